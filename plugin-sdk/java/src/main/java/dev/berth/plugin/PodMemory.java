package dev.berth.plugin;

import berth.plugin.v1.Common;
import com.google.protobuf.ByteString;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Keeps the pods last asked about: an object that comes again is not decoded again, and one that is
 * left out is at hand.
 */
final class PodMemory {
  private static final int LIMIT = 10_000;

  private record Remembered(int attempt, ByteString object, Pod pod) {}

  private final Map<String, Remembered> byUid =
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Remembered> eldest) {
          return size() > LIMIT;
        }
      };

  /**
   * Remembers what was sent for an attempt.
   *
   * @throws IllegalArgumentException if it is no pod
   */
  Pod put(Common.PodRef ref) {
    Pod pod = decode(ref.getUid(), ref.getObject());
    byUid.put(ref.getUid(), new Remembered(ref.getAttempt(), ref.getObject(), pod));
    return pod;
  }

  /** The pod of an attempt, null if it is not at hand. */
  Pod get(String uid, int attempt) {
    Remembered known = byUid.get(uid);
    return known != null && known.attempt == attempt ? known.pod : null;
  }

  /** The pod as last seen, whichever the attempt; null if it is not at hand. */
  Pod latest(String uid) {
    Remembered known = byUid.get(uid);
    return known == null ? null : known.pod;
  }

  void forget(String uid) {
    byUid.remove(uid);
  }

  /** The pod, without work where the same bytes are remembered. */
  Pod decode(String uid, ByteString object) {
    Remembered known = byUid.get(uid);
    return known != null && known.object.equals(object)
        ? known.pod
        : Json.read(object.toByteArray(), Pod.class);
  }
}
