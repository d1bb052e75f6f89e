// Jest runs tests in a vm context with its own typed-array classes. onnxruntime-node checks `instanceof`
// against the outer ones, so tests share the outer classes.
const { TestEnvironment } = require('jest-environment-node');

const SHARED = [
  'ArrayBuffer',
  'SharedArrayBuffer',
  'DataView',
  'Int8Array',
  'Uint8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'Float32Array',
  'Float64Array',
  'BigInt64Array',
  'BigUint64Array',
];

module.exports = class extends TestEnvironment {
  async setup() {
    await super.setup();
    for (const name of SHARED) this.global[name] = globalThis[name];
  }
};
