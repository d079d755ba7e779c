package dev.berth.plugin;

/** How an attempt ended, in the order of the protocol's numbers, which begin with 1. */
public enum CycleOutcome {
  BOUND,
  UNSCHEDULABLE,
  FAILED,
  ABORTED
}
