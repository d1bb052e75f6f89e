/** A step of long work: `done` of `total` (null when unknown) in `unit`s. The CLI turns it into bars or lines. */
export interface Progress {
  readonly stage: string;
  readonly done: number;
  readonly total: number | null;
  readonly unit: string;
}

export type OnProgress = (progress: Progress) => void;
