package dev.berth.plugin;

import java.time.Duration;

/** Has a pod wait at Permit, so long at most, after which the attempt fails. */
public record Wait(Duration timeout) implements Answer.ToPermit {
  public Wait {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("a wait is longer than 0");
    }
  }
}
