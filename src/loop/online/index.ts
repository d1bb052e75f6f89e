export type { LoopControl, LoopTraffic } from './control.js';
export { type FoundVersion, findVersion } from './find-version.js';
export type { OnlineLoop } from './online-loop.js';
export { type LoopOptions, loopFolder, type OpenedLoop, openLoop } from './open-loop.js';
export { createPriority, type Priority, type PrioritySettings } from './priority.js';
export type { Receipt, StepReceipt } from './receipt.js';
export { type LoopState, readLoopState, receiptDocument } from './state.js';
export type { LoopStatus } from './status.js';
