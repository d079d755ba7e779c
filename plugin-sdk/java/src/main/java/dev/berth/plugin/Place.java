package dev.berth.plugin;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;

/** A call's hold on the session: it can be given up and taken again. */
final class Place {
  /** The place of the call that this thread answers. */
  static final ThreadLocal<Place> CURRENT = new ThreadLocal<>();

  private final Line line;
  private Line.Turn turn;
  private boolean held;
  private Runnable beforeWaiting;

  /** The end of the line; what it is given runs once, before this thread first waits. */
  Place(Line line, Runnable beforeWaiting) {
    this.line = line;
    this.turn = line.join();
    this.beforeWaiting = beforeWaiting;
  }

  boolean isHeld() {
    return held;
  }

  /**
   * Waits for the turn; after an exception it has been left.
   *
   * @throws CallException as {@link Patience#waitFor}
   */
  void enter(Patience patience) {
    if (!turn.first) {
      waits();
      turn.waiting = Thread.currentThread();
      try {
        patience.waitFor(() -> turn.first);
      } catch (CallException e) {
        line.leave(turn);
        throw e;
      }
    }
    held = true;
  }

  void leave() {
    if (held) {
      held = false;
      line.leave(turn);
    }
  }

  /** Leaves, because this thread waits for something that others bring. */
  void giveUp() {
    waits();
    leave();
  }

  /** Goes to the end of the line and waits. */
  void enterAgain(Patience patience) {
    turn = line.join();
    enter(patience);
  }

  /** Gives up, and returns after the next change when it is this place's turn again. */
  void pause(Changes changes, Patience patience) {
    long seen = changes.count;
    giveUp();
    changes.await(seen, patience);
    enterAgain(patience);
  }

  private void waits() {
    Runnable once = beforeWaiting;
    beforeWaiting = null;
    if (once != null) {
      once.run();
    }
  }

  /** Counts changes of the mirror and of the profiles, for those who wait for one. */
  static final class Changes {
    private final Set<Thread> waiting = ConcurrentHashMap.newKeySet();
    private volatile long count;

    /** Wakes those who wait; in a turn. */
    void announce() {
      count = count + 1;
      waiting.forEach(LockSupport::unpark);
    }

    private void await(long seen, Patience patience) {
      waiting.add(Thread.currentThread());
      try {
        patience.waitFor(() -> count != seen);
      } finally {
        waiting.remove(Thread.currentThread());
      }
    }
  }
}
