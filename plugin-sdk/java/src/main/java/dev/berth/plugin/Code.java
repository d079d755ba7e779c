package dev.berth.plugin;

import berth.plugin.v1.Common;

/** The outcome of an extension point, in kube-scheduler's words. */
public enum Code {
  /** Go on. */
  SUCCESS(Common.Code.CODE_SUCCESS),
  /** The attempt fails; the pod is tried again after backoff. */
  ERROR(Common.Code.CODE_ERROR),
  /** The pod doesn't fit now; evicting pods, or an event, may help. */
  UNSCHEDULABLE(Common.Code.CODE_UNSCHEDULABLE),
  /** The pod doesn't fit, and evicting pods would not help. */
  UNSCHEDULABLE_AND_UNRESOLVABLE(Common.Code.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE),
  /** PlacementFeasible only; Permit says it with {@link Wait}. */
  WAIT(Common.Code.CODE_WAIT),
  /** The plugin has no opinion on this pod here. */
  SKIP(Common.Code.CODE_SKIP),
  /** The pod waits for something outside the cluster; {@link Requeue} brings it back at once. */
  PENDING(Common.Code.CODE_PENDING);

  final Common.Code message;

  Code(Common.Code message) {
    this.message = message;
  }

  static Code of(Common.Code message) {
    for (Code each : values()) {
      if (each.message == message) {
        return each;
      }
    }
    throw new IllegalArgumentException(message + " is no outcome");
  }
}
