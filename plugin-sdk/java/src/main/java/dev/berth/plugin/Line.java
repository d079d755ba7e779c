package dev.berth.plugin;

import java.util.ArrayDeque;
import java.util.concurrent.locks.LockSupport;

/**
 * Lets one call at a time touch the session, in the order in which calls joined: the order of the
 * stream is the order of the author's methods.
 */
final class Line {
  private final ArrayDeque<Turn> turns = new ArrayDeque<>();

  /** A call's position. */
  static final class Turn {
    volatile boolean first;
    volatile Thread waiting;
  }

  synchronized Turn join() {
    Turn turn = new Turn();
    turn.first = turns.isEmpty();
    turns.addLast(turn);
    return turn;
  }

  synchronized void leave(Turn turn) {
    if (!turn.first) {
      turns.remove(turn);
      return;
    }
    turns.removeFirst();
    Turn next = turns.peekFirst();
    if (next != null) {
      next.first = true;
      LockSupport.unpark(next.waiting);
    }
  }
}
