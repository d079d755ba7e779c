package dev.berth.plugin;

import berth.plugin.v1.Queueing;
import berth.plugin.v1.Queueing.RequeueResponse;
import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * The plugin's own way to speak to the scheduler, from any thread and at any time. What is said
 * while no scheduler listens is lost: it starts by trying everything anyway.
 */
public final class Requeue {
  /** How many sort keys the scheduler reads in a message. */
  private static final int KEYS_A_MESSAGE = 4096;

  private long lastNumber;
  private final Set<Consumer<RequeueResponse>> listeners = ConcurrentHashMap.newKeySet();

  /** Has these pods tried again, by UID. */
  public void pods(String cause, Collection<String> uids) {
    say(RequeueResponse.newBuilder().setRequeue(set(uids)), cause);
  }

  /** Has all pods tried again that this plugin turned down. */
  public void allRejected(String cause) {
    Queueing.AllRejected all = Queueing.AllRejected.getDefaultInstance();
    say(RequeueResponse.newBuilder().setRequeueAll(all), cause);
  }

  /** Lets pods go on that wait at Permit. */
  public void allow(String cause, Collection<String> uids) {
    say(RequeueResponse.newBuilder().setAllowWaiting(set(uids)), cause);
  }

  /** Stops pods that wait at Permit; their attempt fails. */
  public void reject(String cause, Collection<String> uids) {
    say(RequeueResponse.newBuilder().setRejectWaiting(set(uids)), cause);
  }

  /** Has pods sorted by these keys from now on, by UID. */
  public void sortKeys(String cause, Map<String, SortKey> keys) {
    Iterator<Map.Entry<String, SortKey>> left = keys.entrySet().iterator();
    while (left.hasNext()) {
      Queueing.PodSortKeys.Builder part = Queueing.PodSortKeys.newBuilder();
      while (left.hasNext() && part.getUidsCount() < KEYS_A_MESSAGE) {
        Map.Entry<String, SortKey> next = left.next();
        part.addUids(next.getKey()).addKeys(next.getValue().message());
      }
      say(RequeueResponse.newBuilder().setSortKeys(part), cause);
    }
  }

  void listen(Consumer<RequeueResponse> listener) {
    listeners.add(listener);
  }

  void end(Consumer<RequeueResponse> listener) {
    listeners.remove(listener);
  }

  /** The number of what was said last, 0 if nothing was. */
  synchronized long lastNumber() {
    return lastNumber;
  }

  private synchronized void say(RequeueResponse.Builder message, String cause) {
    RequeueResponse whole = message.setCause(cause).setNumber(++lastNumber).build();
    listeners.forEach(each -> each.accept(whole));
  }

  private static Queueing.PodSet set(Collection<String> uids) {
    return Queueing.PodSet.newBuilder().addAllUids(uids).build();
  }
}
