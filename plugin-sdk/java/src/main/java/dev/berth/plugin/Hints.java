package dev.berth.plugin;

import berth.plugin.v1.Queueing;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The table of QueueingHints; pods that aren't remembered are queued and named. */
final class Hints {
  private Hints() {}

  /**
   * Fills in the table.
   *
   * @throws ContractException where the author's method fails, which means: queue them all
   */
  static Queueing.QueueingHintsResponse answer(
      Session session, Queueing.QueueingHintsRequest request) {
    List<Pod> present = new ArrayList<>();
    int[] columns = new int[request.getPodsCount()];
    boolean[] unknown = new boolean[request.getPodsCount()];
    for (int column = 0; column < unknown.length; column++) {
      Pod pod = session.waiting(request.getPods(column));
      unknown[column] = pod == null;
      if (pod != null) {
        columns[present.size()] = column;
        present.add(pod);
      }
    }
    boolean[][] table = table(session.plugin, present, events(request));
    Queueing.QueueingHintsResponse.Builder made = Queueing.QueueingHintsResponse.newBuilder();
    if (present.size() < unknown.length) {
      made.setUnknownPods(Packing.bits(unknown));
    }
    for (boolean[] row : table) {
      boolean[] whole = unknown.clone();
      for (int i = 0; i < row.length; i++) {
        whole[columns[i]] = row[i];
      }
      made.addHints(hint(whole));
    }
    return made.build();
  }

  private static List<ClusterEvent> events(Queueing.QueueingHintsRequest request) {
    try {
      return request.getEventsList().stream().map(ClusterEvent::of).toList();
    } catch (IllegalArgumentException e) {
      throw CallException.invalid("events: " + e.getMessage());
    }
  }

  private static boolean[][] table(Plugin plugin, List<Pod> pods, List<ClusterEvent> events) {
    boolean[][] table =
        ContractException.guarded(
            "queueingHint",
            () ->
                plugin instanceof Plugin.Hints author && !pods.isEmpty()
                    ? author.queueingHints(pods, events)
                    : each(plugin, pods, events));
    if (table.length != events.size()) {
      throw new ContractException("expected " + events.size() + " rows, got " + table.length);
    }
    for (boolean[] row : table) {
      if (row.length != pods.size()) {
        throw new ContractException("a row of " + row.length + " for " + pods.size() + " pods");
      }
    }
    return table;
  }

  private static boolean[][] each(Plugin plugin, List<Pod> pods, List<ClusterEvent> events) {
    boolean[][] table = new boolean[events.size()][pods.size()];
    for (int row = 0; row < table.length; row++) {
      for (int column = 0; column < pods.size(); column++) {
        table[row][column] =
            !(plugin instanceof Plugin.Hint author)
                || author.queueingHint(pods.get(column), events.get(row));
      }
    }
    return table;
  }

  private static Queueing.Hint hint(boolean[] row) {
    boolean first = row.length > 0 && row[0];
    boolean[] same = new boolean[row.length];
    Arrays.fill(same, first);
    Queueing.Hint.Builder made = Queueing.Hint.newBuilder();
    return Arrays.equals(row, same)
        ? made.setAll(first).build()
        : made.setPods(Packing.bits(row)).build();
  }
}
