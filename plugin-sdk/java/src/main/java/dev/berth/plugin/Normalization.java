package dev.berth.plugin;

import berth.plugin.v1.Scheduling;

/** How the scheduler maps raw scores over the nodes that are left to 0 to 100. */
public enum Normalization {
  /** They are that already. */
  NONE(Scheduling.Normalization.NORMALIZATION_NONE),
  /** Divided by the highest. */
  MAX(Scheduling.Normalization.NORMALIZATION_MAX),
  /** Divided by the highest, and turned round. */
  MAX_REVERSE(Scheduling.Normalization.NORMALIZATION_MAX_REVERSE),
  /** Stretched from the lowest to the highest. */
  MIN_MAX(Scheduling.Normalization.NORMALIZATION_MIN_MAX);

  final Scheduling.Normalization message;

  Normalization(Scheduling.Normalization message) {
    this.message = message;
  }
}
