import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { runtimeReport } from '../../src/runtime/index.js';

test('says how onnxruntime is reached and on what it runs', async () => {
  const report = await runtimeReport();
  const { libraryPath, cpuModel } = report;
  expect(report).toMatchObject({
    kind: 'c-api',
    onnxruntimeVersion: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    koffiVersion: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    fallbackReason: null,
    threads: availableParallelism(),
  });
  expect(existsSync(libraryPath as string)).toBe(true);
  expect(cpuModel.length).toBeGreaterThan(0);
});

test('without koffi the binding stands in, and the report says why', async () => {
  jest.resetModules();
  jest.doMock('koffi', () => {
    throw new Error('no koffi here');
  });
  const fresh = await import('../../src/runtime/index.js');
  expect(await fresh.runtimeReport()).toMatchObject({
    kind: 'binding',
    libraryPath: null,
    koffiVersion: null,
    fallbackReason: 'no koffi here',
  });
  expect((await fresh.openRuntime()).kind).toBe('binding');
  jest.dontMock('koffi');
});
