import { sha256Hex } from '../util/digest.js';

/** Items in an order of the hash of their ids: any first part of it is a fair sample, and always the same. */
export const sampleOrder = <Item extends { readonly id: string }>(items: readonly Item[]): Item[] =>
  items
    .map((item) => ({ item, key: sha256Hex(`e${item.id}`) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ item }) => item);
