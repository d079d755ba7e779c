package dev.berth.plugin;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * What a plugin knows of time: the machine's, until a scheduler says the time; that scheduler's
 * from then on. A plugin whose {@link Traits#clock} it is reads the time and sets timers by it
 * alone, so that a simulation plays it in virtual time. From any thread.
 *
 * <p>The machine's time is read once, and counted on from there: the clock never jumps, whatever is
 * done to the machine's. It goes back only where another run of a scheduler says an earlier time,
 * which {@code stateReset} announces as a changed epoch.
 *
 * <pre>
 * own --Time--> told --Begin of a stream without Time--> own
 * </pre>
 *
 * <p>Timers keep what is left of them where the clock turns from one to the other.
 */
public final class Clock {
  private final LongSupplier steadyNanos;
  private final long beganNanos;
  private final long beganMicros;

  private final PriorityQueue<Timer> timers =
      new PriorityQueue<>(
          Comparator.<Timer>comparingLong(each -> each.dueMicros)
              .thenComparingLong(each -> each.number));

  /** The scheduler's time, null while the clock is the plugin's own. */
  private Long told;

  private long numbers;
  private Turns turns;
  private ScheduledThreadPoolExecutor alarms;
  private ScheduledFuture<?> alarm;

  /** A function that waits for its time. */
  public final class Timer {
    private final long number;
    private final Runnable function;
    private long dueMicros;

    private Timer(long number, long dueMicros, Runnable function) {
      this.number = number;
      this.dueMicros = dueMicros;
      this.function = function;
    }

    /** Has the function not called; nothing happens where it was called, or cancelled, before. */
    public void cancel() {
      synchronized (Clock.this) {
        timers.remove(this);
      }
    }
  }

  /** The machine's clock. */
  public Clock() {
    this(Instant.now(), System::nanoTime);
  }

  Clock(Instant began, LongSupplier steadyNanos) {
    this.steadyNanos = steadyNanos;
    beganNanos = steadyNanos.getAsLong();
    beganMicros = ChronoUnit.MICROS.between(Instant.EPOCH, began);
  }

  /** What time it is. */
  public synchronized Instant now() {
    return Instant.EPOCH.plus(micros(), ChronoUnit.MICROS);
  }

  /**
   * Calls the function once so much time has passed: by itself, in its turn, as a call's method is.
   * What it throws is logged.
   */
  public synchronized Timer after(Duration wait, Runnable function) {
    long micros = Math.max(1, wait.plusNanos(999).toNanos() / 1000);
    Timer timer = new Timer(numbers++, micros() + micros, function);
    timers.add(timer);
    if (timers.peek() == timer) {
      arm();
    }
    return timer;
  }

  /** Has timers run by themselves from now on, in such turns. */
  synchronized void serve(Turns turns) {
    this.turns = turns;
    alarms =
        new ScheduledThreadPoolExecutor(
            1,
            ring -> {
              Thread thread = new Thread(ring, "berth-clock");
              thread.setDaemon(true);
              return thread;
            });
    alarms.setRemoveOnCancelPolicy(true);
    arm();
  }

  /** Has none run by itself any more. */
  synchronized void stop() {
    if (alarms != null) {
      alarms.shutdownNow();
      alarms = null;
    }
  }

  /**
   * Stands at that time of the scheduler, after each timer that is due by then was called at its
   * own; when the next one is due, null if none is. Called in the plugin's turn.
   */
  Long reach(long micros) {
    synchronized (this) {
      if (told == null || micros < told) {
        turn(micros);
      }
    }
    for (Timer due = due(micros); due != null; due = due(micros)) {
      ContractException.tell("timer", due.function);
    }
    synchronized (this) {
      told = micros;
      return timers.isEmpty() ? null : timers.peek().dueMicros;
    }
  }

  /** Goes on by the machine's time. */
  synchronized void own() {
    if (told != null) {
      turn(null);
      arm();
    }
  }

  private void ring() {
    long now;
    synchronized (this) {
      if (told != null) {
        return;
      }
      now = micros();
    }
    for (Timer due = due(now); due != null; due = due(now)) {
      ContractException.tell("timer", due.function);
    }
    synchronized (this) {
      arm();
    }
  }

  /** Takes the next timer that is due by then, and stands at its time; null if there is none. */
  private synchronized Timer due(long micros) {
    if (timers.isEmpty() || timers.peek().dueMicros > micros) {
      return null;
    }
    Timer next = timers.poll();
    if (told != null) {
      told = Math.max(told, next.dueMicros);
    }
    return next;
  }

  private long micros() {
    return told != null
        ? told
        : beganMicros + TimeUnit.NANOSECONDS.toMicros(steadyNanos.getAsLong() - beganNanos);
  }

  /** Counts by another time; timers keep what is left of them. */
  private void turn(Long to) {
    disarm();
    long before = micros();
    told = to;
    long shift = micros() - before;
    timers.forEach(each -> each.dueMicros += shift); // the order stays
  }

  /** Wakes the plugin at the next timer's time, where the clock is its own. */
  private void arm() {
    disarm();
    if (alarms != null && told == null && !timers.isEmpty()) {
      long left = Math.max(0, timers.peek().dueMicros - micros());
      alarm = alarms.schedule(() -> turns.run(this::ring), left, TimeUnit.MICROSECONDS);
    }
  }

  private void disarm() {
    if (alarm != null) {
      alarm.cancel(false);
      alarm = null;
    }
  }
}
