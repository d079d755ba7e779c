/** What metrics say of nodes, and who is asked for them. */

/** One resource in use, in thousandths of a core or bytes; without a window the deviation is 0. */
export interface Measured {
  readonly mean: number;
  readonly deviation: number;
}

/** One node's metrics. */
export interface Reading {
  /** When they were taken, in milliseconds since 1970. */
  readonly at: number;
  readonly cpu?: Measured;
  readonly memory?: Measured;
}

/** Metrics by a node's name or one of its addresses. */
export type Readings = ReadonlyMap<string, Reading>;

/** A server of metrics. */
export interface Source {
  /**
   * The metrics of all nodes.
   * @throws Error if the server does not give them.
   */
  fetch(signal: AbortSignal): Promise<Readings>;
}
