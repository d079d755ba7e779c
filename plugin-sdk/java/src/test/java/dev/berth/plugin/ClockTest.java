package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.berth.plugin.testing.Host;
import dev.berth.plugin.testing.Make;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** The time that a plugin reads, and its timers. */
class ClockTest {
  private static final Instant NOON = Instant.ofEpochSecond(1_800_000_000L);
  private static final Node NODE = Make.node("n");

  /** Turns nodes down before noon; its timers write down when they ran, in seconds after it. */
  private static final class Alarms implements Plugin.Filter {
    final Clock clock = new Clock();
    final List<Long> rang = Collections.synchronizedList(new ArrayList<>());

    @Override
    public Traits traits() {
      return Traits.named("alarms").clock(clock);
    }

    @Override
    public Reason filter(Pod pod, Node node) {
      return clock.now().isBefore(NOON) ? Reason.of("node(s) are closed before noon") : null;
    }

    Clock.Timer set(long seconds, long... then) {
      return clock.after(
          Duration.ofSeconds(seconds),
          () -> {
            rang.add(Duration.between(NOON, clock.now()).toSeconds());
            for (long each : then) {
              set(each);
            }
          });
    }
  }

  private final Alarms plugin = new Alarms();

  @Test
  void answersFollowTheTimeThatIsSaid() {
    try (Host host = Host.of(plugin, NODE)) {
      host.setTime(NOON.minusSeconds(1));
      assertEquals(List.of(), host.filter(Make.pod("p")).passing());
      host.setTime(NOON);
      assertEquals(List.of("n"), host.filter(Make.pod("p")).passing());
    }
  }

  @Test
  void eachTimerRunsAtItsOwnTime() {
    try (Host host = Host.of(plugin, NODE)) {
      host.setTime(NOON);
      plugin.set(60);
      plugin.set(10, 5, 500);
      plugin.set(20).cancel();

      assertEquals(NOON.plusSeconds(510), host.setTime(NOON.plusSeconds(100)));
      assertEquals(List.of(10L, 15L, 60L), plugin.rang);
      assertNull(host.setTime(NOON.plusSeconds(600)));
    }
  }

  @Test
  void timersKeepWhatIsLeftOfThem() throws InterruptedException {
    try (Host host = Host.of(plugin, NODE)) {
      host.setTime(NOON);
      plugin.set(60);
      Instant dayBefore = NOON.minus(Duration.ofDays(1));
      CountDownLatch rang = new CountDownLatch(1);

      assertEquals(dayBefore.plusSeconds(60), host.setTime(dayBefore));
      plugin.clock.after(Duration.ofMillis(1), rang::countDown);
      host.sync();

      assertTrue(
          rang.await(30, TimeUnit.SECONDS), "a stream without time gives the machine's back");
      assertNotEquals(dayBefore, plugin.clock.now());
    }
  }

  @Test
  void timersThatFailLeaveTheOthersAndNoneIsDueAtOnce() {
    try (Host host = Host.of(plugin, NODE)) {
      host.setTime(NOON);
      plugin.clock.after(
          Duration.ofSeconds(1),
          () -> {
            throw new IllegalStateException("broken");
          });
      plugin.set(2);

      assertNull(host.setTime(NOON.plusSeconds(2)));
      assertEquals(List.of(2L), plugin.rang);
      plugin.set(0);
      Instant wake = host.setTime(NOON.plusSeconds(2));
      assertTrue(wake.isAfter(NOON.plusSeconds(2)), "the next timer is due at " + wake);
    }
  }

  @Test
  void theMachinesTimeIsReadOnceAndCountedOn() {
    AtomicLong steady = new AtomicLong();
    Clock clock = new Clock(NOON, steady::get);

    steady.addAndGet(TimeUnit.SECONDS.toNanos(5));

    assertEquals(NOON.plusSeconds(5), clock.now());
  }
}
