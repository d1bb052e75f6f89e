// Writes small ONNX files for the tests of this room.

import { writeFileSync } from 'node:fs';
import { onnx } from 'onnx-proto';

export const FLOAT32 = 1;
export const UINT8 = 2;
export const INT64 = 7;
export const FLOAT16 = 10;

type Dimension = number | string;
type Attribute = number | string | readonly number[];

export interface Node {
  readonly op: string;
  readonly domain?: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, Attribute>>;
}

export interface GraphFile {
  readonly inputs: Readonly<Record<string, readonly [type: number, shape: readonly Dimension[]]>>;
  readonly outputs: Readonly<Record<string, readonly [type: number, shape: readonly Dimension[]]>>;
  readonly constants?: Readonly<
    Record<string, readonly [shape: readonly number[], data: Float32Array | BigInt64Array]>
  >;
  /** Constants in a file beside the graph. */
  readonly external?: Readonly<Record<string, External>>;
  readonly nodes: readonly Node[];
}

export interface External {
  readonly type: number;
  readonly shape: readonly number[];
  readonly file: string;
  readonly byteOffset: number;
  readonly byteLength: number;
}

const external = ([name, { type, shape, file, byteOffset, byteLength }]: [string, External]) => ({
  name,
  dims: [...shape],
  dataType: type,
  dataLocation: onnx.TensorProto.DataLocation.EXTERNAL,
  externalData: [
    { key: 'location', value: file },
    { key: 'offset', value: String(byteOffset) },
    { key: 'length', value: String(byteLength) },
  ],
});

function attribute(name: string, value: Attribute): onnx.IAttributeProto {
  const { AttributeType } = onnx.AttributeProto;
  if (typeof value === 'string') return { name, s: Buffer.from(value), type: AttributeType.STRING };
  if (typeof value === 'number') return { name, i: value, type: AttributeType.INT };
  return { name, ints: [...value], type: AttributeType.INTS };
}

const valueInfo = ([name, [elemType, shape]]: [string, readonly [number, readonly Dimension[]]]) => ({
  name,
  type: {
    tensorType: {
      elemType,
      shape: { dim: shape.map((d) => (typeof d === 'number' ? { dimValue: d } : { dimParam: d })) },
    },
  },
});

export function writeGraph(path: string, graph: GraphFile): string {
  const model = onnx.ModelProto.create({
    irVersion: 9,
    opsetImport: [
      { domain: '', version: 21 },
      { domain: 'com.microsoft', version: 1 },
    ],
    graph: {
      name: 'test',
      node: graph.nodes.map((node, at) => ({
        name: `${node.op}_${at}`,
        opType: node.op,
        domain: node.domain ?? '',
        input: [...node.inputs],
        output: [...node.outputs],
        attribute: Object.entries(node.attributes ?? {}).map(([name, value]) => attribute(name, value)),
      })),
      initializer: [
        ...Object.entries(graph.constants ?? {}).map(([name, [dims, data]]) => ({
          name,
          dims: [...dims],
          dataType: data instanceof BigInt64Array ? INT64 : FLOAT32,
          rawData: new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
        })),
        ...Object.entries(graph.external ?? {}).map(external),
      ],
      input: Object.entries(graph.inputs).map(valueInfo),
      output: Object.entries(graph.outputs).map(valueInfo),
    },
  });
  writeFileSync(path, onnx.ModelProto.encode(model).finish());
  return path;
}
