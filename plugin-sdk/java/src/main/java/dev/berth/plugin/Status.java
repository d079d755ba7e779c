package dev.berth.plugin;

import java.util.List;

/** A verdict on the pod as a whole. */
public record Status(Code code, List<String> reasons)
    implements Answer.ToReserve,
        Answer.ToPermit,
        Answer.ToPostFilter,
        Answer.ToGeneratePlacements,
        Answer.ToPodGroupPostFilter {
  /** The pod passes. */
  public static final Status SUCCESS = new Status(Code.SUCCESS, List.of());

  /** The plugin has no opinion. */
  public static final Status SKIP = new Status(Code.SKIP, List.of());

  public Status {
    reasons = List.copyOf(reasons);
  }

  /** A verdict with its reasons, sentences for the user. */
  public static Status of(Code code, String... reasons) {
    return new Status(code, List.of(reasons));
  }

  /** Turns the pod down until evicted pods or an event may help. */
  public static Status unschedulable(String reason) {
    return of(Code.UNSCHEDULABLE, reason);
  }

  /** Turns the pod down until {@link Requeue} says otherwise, and then without backoff. */
  public static Status pending(String reason) {
    return of(Code.PENDING, reason);
  }

  /** Ends the attempt; the pod is tried again after backoff. */
  public static Status error(String reason) {
    return of(Code.ERROR, reason);
  }
}
