package dev.berth.plugin;

import berth.plugin.v1.Queueing;
import berth.plugin.v1.Queueing.RequeueResponse;
import java.util.Collection;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * The plugin's own way to speak to the scheduler, from any thread and at any time. What is said
 * while no scheduler listens is lost: it starts by trying everything anyway.
 */
public final class Requeue {
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

  void listen(Consumer<RequeueResponse> listener) {
    listeners.add(listener);
  }

  void end(Consumer<RequeueResponse> listener) {
    listeners.remove(listener);
  }

  private void say(RequeueResponse.Builder message, String cause) {
    RequeueResponse whole = message.setCause(cause).build();
    listeners.forEach(each -> each.accept(whole));
  }

  private static Queueing.PodSet set(Collection<String> uids) {
    return Queueing.PodSet.newBuilder().addAllUids(uids).build();
  }
}
