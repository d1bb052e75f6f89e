import { SaxesParser } from 'saxes';
import { knownFigures, plotRuns } from '../../../src/training/index.js';

/** Elements of a well-formed document; throws for another. */
function elementsOf(svg: string): { name: string; attributes: Record<string, string> }[] {
  const elements: { name: string; attributes: Record<string, string> }[] = [];
  const parser = new SaxesParser();
  parser.on('opentag', ({ name, attributes }) =>
    elements.push({ name, attributes: attributes as Record<string, string> }),
  );
  parser.on('error', (error) => {
    throw error;
  });
  parser.write(svg).close();
  return elements;
}

const rows = [1, 2, 3, 4].map((step) => ({ step, reward: step / 10, loss: 1 }));

test('a panel a figure, a line a run, names escaped', () => {
  const svg = plotRuns([
    { name: 'a < "b" & c', rows },
    { name: 'other', rows: [{ step: 2, reward: 0.9 }] },
  ]);
  const elements = elementsOf(svg);
  const lines = elements.filter(({ name }) => name === 'polyline');
  // Two runs have a reward, one of them at one step only; one has a loss that never changes.
  expect(lines.map(({ attributes }) => attributes.points?.split(' ').length)).toEqual([4, 4]);
  expect(elements.filter(({ name }) => name === 'circle')).toHaveLength(1);
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
  const xs = lines[0]?.attributes.points?.split(' ').map((point) => Number(point.split(',')[0])) as number[];
  expect(xs).toEqual([...xs].sort((a, b) => a - b));
});

test('a figure without a number anywhere has no panel', () => {
  const written = JSON.parse(JSON.stringify([{ step: 1, reward: Number.NaN, loss: 2 }]));
  const runs = [{ name: 'r', rows: written }];
  const svg = plotRuns(runs);
  expect(svg).not.toMatch(/NaN|Infinity|>reward</);
  expect(elementsOf(svg).filter(({ name }) => name === 'circle')).toHaveLength(1);
  expect(knownFigures(runs)).toEqual(['loss']);
});

test('chosen figures only; a smoothed point is the mean of those up to it', () => {
  const plain = elementsOf(plotRuns([{ name: 'r', rows }], ['reward', 'absent']));
  expect(plain.filter(({ name }) => name === 'polyline')).toHaveLength(1);
  const svg = plotRuns([{ name: 'r', rows }], ['reward'], 2);
  // 0.1, then means of neighbours: the last is 0.35.
  expect(svg).toMatch(/>0\.35</);
  expect(elementsOf(plotRuns([{ name: 'r', rows }], ['absent'])).map(({ name }) => name)).toContain('svg');
});
