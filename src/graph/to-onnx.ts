// The way out: a graph as ONNX protobuf bytes.

import onnxProto from 'onnx-proto';
import { type Constant, type Graph, type GraphNode, isExternal } from './graph.js';
import type { AttributeKind } from './op.js';
import { OPS } from './ops/index.js';
import type { AttributeValue, Value } from './value.js';

const { onnx } = onnxProto;

const IR_VERSION = 9;
const OPSET = 21;

/** Codes of TensorProto.DataType. */
const DATA_TYPE: Readonly<Record<Value['type'], number>> = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
};

/** Codes of AttributeProto.AttributeType, and the field that holds the value. */
const ATTRIBUTE: Readonly<
  Record<string, (value: AttributeValue) => { type: number; [field: string]: unknown }>
> = {
  float: (value) => ({ type: 1, f: value }),
  int: (value) => ({ type: 2, i: value }),
  string: (value) => ({ type: 3, s: new TextEncoder().encode(String(value)) }),
  ints: (value) => ({ type: 7, ints: value }),
};

/** ONNX protobuf bytes of a verified graph. External constants keep their file names. */
export function toOnnx(graph: Graph): Uint8Array {
  const model = onnx.ModelProto.create({
    irVersion: IR_VERSION,
    producerName: 'searchloop',
    opsetImport: [
      { domain: '', version: OPSET },
      { domain: 'com.microsoft', version: 1 },
    ],
    graph: {
      name: graph.name,
      node: graph.nodes.map(nodeProto),
      initializer: [...graph.constants.values()].map(tensorProto),
      input: graph.inputs.map(valueProto),
      output: graph.outputs.map(valueProto),
    },
  });
  return onnx.ModelProto.encode(model).finish();
}

function valueProto({ name, type, shape }: Value) {
  const dim = shape.map((item) => (typeof item === 'number' ? { dimValue: item } : { dimParam: item }));
  return { name, type: { tensorType: { elemType: DATA_TYPE[type], shape: { dim } } } };
}

function tensorProto({ value, data }: Constant) {
  const tensor = { name: value.name, dims: value.shape as number[], dataType: DATA_TYPE[value.type] };
  if (!isExternal(data)) return { ...tensor, rawData: data };
  const place = { location: data.file, offset: data.byteOffset, length: data.byteLength };
  return {
    ...tensor,
    dataLocation: 1,
    externalData: Object.entries(place).map(([key, entry]) => ({ key, value: String(entry) })),
  };
}

function nodeProto(node: GraphNode) {
  const definition = OPS[node.op];
  const kinds: Readonly<Record<string, AttributeKind>> = definition.attributes;
  return {
    opType: definition.type,
    domain: definition.domain,
    name: node.name,
    input: node.inputs.map((name) => name ?? ''),
    output: [...node.outputs],
    attribute: Object.entries(node.attributes).map(([name, value]) => ({
      name,
      ...ATTRIBUTE[(kinds[name] as string).replace('?', '')]?.(value),
    })),
  };
}
