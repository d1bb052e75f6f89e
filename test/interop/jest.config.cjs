// Checks against reference values that are not part of this project; `npm run test:interop` runs them with
// ORACLES naming their folder. Run `npm run build` before.
/** @type {import('jest').Config} */
module.exports = {
  ...require('../../jest.config.cjs'),
  rootDir: '../..',
  testMatch: ['<rootDir>/test/interop/*.interop.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  testTimeout: 1_800_000,
  maxWorkers: 1,
};
