// Source is ES modules; swc turns it into CommonJS for jest's own loader (no experimental flag needed).
// Packages that ship ES modules only are transformed too. Worker threads load dist/, hence `pretest: build`.
/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: '<rootDir>/test/support/node-environment.cjs',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/interop/'],
  moduleNameMapper: { '^#searchloop/(.*)\\.js$': '<rootDir>/src/$1', '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.(ts|m?js)$': [
      '@swc/jest',
      {
        jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
        module: { type: 'commonjs' },
      },
    ],
  },
  transformIgnorePatterns: ['/node_modules/(?!(@huggingface|lru-cache|wtf_wikipedia|commander)/)', '/dist/'],
  reporters: ['default', '<rootDir>/test/support/summary-reporter.cjs'],
  testTimeout: 60000,
  maxWorkers: 2,
};
