package dev.berth.plugin;

import berth.plugin.v1.Common;
import berth.plugin.v1.Identity;
import berth.plugin.v1.Scheduling;
import berth.plugin.v1.State;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * What one plugin process knows: its mirror, its profiles, and the pods that it was asked about.
 * Only the holder of a place in the line touches it.
 */
final class Session implements Turns {
  private static final int PROTOCOL_VERSION = 1;

  final Plugin plugin;
  final Traits traits;
  final Meter meter;
  final Line line = new Line();
  final Mirror mirror;
  final PodMemory pods = new PodMemory();
  final Place.Changes changes = new Place.Changes();

  /** The Sync stream that counts, the one opened last. */
  SyncStream stream;

  private final Map<String, Profile> profiles = new HashMap<>();
  private final Consumer<Boolean> onReady;
  private boolean ready;

  /** Readiness is reported when it changes. */
  Session(Plugin plugin, Traits traits, Meter meter, Consumer<Boolean> onReady) {
    this.plugin = plugin;
    this.traits = traits;
    this.meter = meter;
    this.onReady = onReady;
    this.mirror = new Mirror(plugin);
  }

  @Override
  public void run(Runnable function) {
    Place here = new Place(line, null);
    here.enter(Patience.ENDLESS);
    try {
      function.run();
    } finally {
      here.leave();
    }
  }

  /** Wakes the calls that wait, and reports readiness: configured and synced. */
  void announce() {
    changes.announce();
    boolean now = !profiles.isEmpty() && mirror.generation > 0;
    if (now != ready) {
      ready = now;
      onReady.accept(now);
    }
    meter.state(mirror);
  }

  /** Takes over a profile's arguments, or says all that is wrong with them. */
  List<String> configure(Identity.ConfigureRequest request) {
    if (request.getRemoved()) {
      remove(request.getProfile());
      return List.of();
    }
    List<String> problems = new ArrayList<>(request.getHandshakeErrorsList());
    if (request.getProtocolVersion() != PROTOCOL_VERSION) {
      problems.add(
          "protocol_version: " + request.getProtocolVersion() + " is not spoken here, 1 is");
    }
    if (!problems.isEmpty()) {
      return problems;
    }
    Profile profile = new Profile(request.getProfile(), request.getShadow());
    byte[] given = request.hasArguments() ? request.getArguments().toByteArray() : new byte[0];
    try {
      problems =
          ContractException.guarded(
              "arguments",
              () ->
                  traits.arguments == null
                      ? Arguments.none(profile, given)
                      : traits.arguments.take(profile, given));
    } catch (ContractException e) {
      return List.of(e.getMessage());
    }
    if (problems.isEmpty()) {
      profiles.put(profile.name(), profile);
      announce();
    }
    return problems;
  }

  private void remove(String profile) {
    if (profiles.remove(profile) == null) {
      return;
    }
    if (traits.arguments != null) {
      traits.arguments.drop(profile);
    }
    ContractException.tell("profileRemoved", () -> plugin.profileRemoved(profile));
    announce();
  }

  Profile profile(String name) {
    return profiles.getOrDefault(name, new Profile(name, false));
  }

  /**
   * Holds the generation that the call is about, by its own deltas or by waiting for the stream.
   */
  void catchUp(Common.Call head, Place here, Patience patience) {
    checkProfile(head.getProfile());
    checkEpoch(head);
    follow(head);
    while (head.getGeneration() > mirror.generation) {
      here.pause(changes, patience);
      checkEpoch(head);
    }
  }

  private void follow(Common.Call head) {
    long before = mirror.generation;
    try {
      head.getDeltasList().forEach(delta -> mirror.follow(delta, this::steps));
    } catch (SyncException e) {
      if (e.reason != State.NackReason.NACK_REASON_GAP) {
        throw CallException.refused(CallException.NOT_SYNCED, e.getMessage());
      }
      // The stream brings what is missing.
    } finally {
      if (mirror.generation != before) {
        announce();
      }
    }
  }

  /** Decodes a delta, knowing the pods that calls have brought. */
  List<Step> steps(List<State.Change> delta) {
    return Step.of(delta, pods::decode);
  }

  void checkProfile(String name) {
    if (!profiles.containsKey(name)) {
      throw CallException.refused(
          CallException.NOT_CONFIGURED, "profile \"" + name + "\" was not configured");
    }
  }

  void checkEpoch(Common.Call head) {
    if (mirror.generation == 0 || !head.getEpoch().equals(mirror.epoch)) {
      throw CallException.refused(
          CallException.NOT_SYNCED,
          "epoch \"" + mirror.epoch + "\" is held, not \"" + head.getEpoch() + "\"");
    }
  }

  /**
   * The pod that the call is about, as sent or as remembered from an earlier call of the attempt.
   */
  Pod pod(Common.PodRef ref) {
    String name = "pod " + ref.getNamespace() + "/" + ref.getName() + ": ";
    if (!ref.hasObject()) {
      Pod known = pods.get(ref.getUid(), ref.getAttempt());
      if (known == null) {
        throw CallException.refused(CallException.POD_UNKNOWN, name + "its object is needed");
      }
      return known;
    }
    try {
      return pods.put(ref);
    } catch (IllegalArgumentException e) {
      throw CallException.invalid(name + e.getMessage());
    }
  }

  /** A pod that waits, as sent or as last seen, null if it is not at hand. */
  Pod waiting(Common.PodRef ref) {
    if (!ref.hasObject()) {
      return pods.latest(ref.getUid());
    }
    try {
      return pods.put(ref);
    } catch (IllegalArgumentException e) {
      return null;
    }
  }

  /** All nodes at the call's indices; without candidates all are asked about. */
  Nodes nodes(Common.Call head, Scheduling.Candidates candidates) {
    checkEpoch(head);
    if (head.getGeneration() < mirror.layoutSince) {
      throw CallException.refused(
          CallException.GENERATION_GONE,
          "node indices of generation " + head.getGeneration() + " ended at " + mirror.layoutSince);
    }
    return Nodes.of(mirror, candidates);
  }

  /** A node by name, null if it is gone. */
  Node node(String name) {
    Integer at = mirror.index.get(name);
    return at == null ? null : mirror.nodes.get(at);
  }
}
