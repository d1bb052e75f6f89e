import { InvalidInputError } from '../../src/errors.js';
import { createLogger } from '../../src/telemetry/index.js';

function collect(level: 'info' | 'silent') {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ level, destination: { write: (line) => lines.push(JSON.parse(line)) } });
  return { lines, logger };
}

test('a child logger puts its fields on every line', () => {
  const { lines, logger } = collect('info');
  const child = logger.child({ requestId: 'req_1' });
  child.info({ status: 200 }, 'answered');
  child.warn({}, 'odd');
  expect(lines).toMatchObject([
    { requestId: 'req_1', status: 200, msg: 'answered', level: 30 },
    { requestId: 'req_1', msg: 'odd', level: 40 },
  ]);
  expect(lines[0]).not.toHaveProperty('hostname');
});

test('errors keep their class, code and stack', () => {
  const { lines, logger } = collect('info');
  logger.error({ err: new InvalidInputError('expected a number, got a string', 'n') }, 'failed');
  expect(lines[0]).toMatchObject({
    err: { type: 'InvalidInputError', code: 'invalid_input', message: 'expected a number, got a string' },
  });
});

test('levels below the configured one are silent', () => {
  const { lines, logger } = collect('info');
  logger.debug({}, 'hidden');
  const silent = collect('silent');
  silent.logger.error({}, 'hidden');
  expect([...lines, ...silent.lines]).toEqual([]);
});
