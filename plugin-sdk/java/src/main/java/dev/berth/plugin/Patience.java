package dev.berth.plugin;

import io.grpc.Status;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** How long a call waits: until its deadline, or until its caller went away. */
final class Patience {
  /** Waits as long as it takes. */
  static final Patience ENDLESS = new Patience(false, 0);

  private final boolean limited;
  private final long until;
  private volatile boolean cancelled;
  private volatile Thread waiting;

  private Patience(boolean limited, long until) {
    this.limited = limited;
    this.until = until;
  }

  /** Waits so long, without a limit if that is 0. */
  static Patience nanos(long nanos) {
    return new Patience(nanos != 0, System.nanoTime() + nanos);
  }

  void cancel() {
    cancelled = true;
    LockSupport.unpark(waiting);
  }

  /**
   * Returns when that is so; what makes it so unparks this thread.
   *
   * @throws CallException when the time is up or the caller went away
   */
  void waitFor(BooleanSupplier condition) {
    if (this != ENDLESS) {
      waiting = Thread.currentThread();
    }
    while (!condition.getAsBoolean()) {
      if (cancelled) {
        throw new CallException(Status.Code.CANCELLED, "the call was cancelled");
      }
      if (!limited) {
        LockSupport.park(this);
      } else {
        long left = until - System.nanoTime();
        if (left <= 0) {
          throw new CallException(Status.Code.DEADLINE_EXCEEDED, "the call's time is up");
        }
        LockSupport.parkNanos(this, left);
      }
      Thread.interrupted(); // an author's interrupt would keep this thread from parking
    }
  }
}
