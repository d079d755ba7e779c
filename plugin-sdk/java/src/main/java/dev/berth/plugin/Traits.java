package dev.berth.plugin;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a plugin says about itself. */
public final class Traits {
  final String name;
  String version = "0.0.0";
  Arguments<?> arguments;
  Normalization normalization = Normalization.NONE;
  List<EventInterest> events = List.of();
  List<String> podFields;
  boolean nodeLocal;
  boolean scoreNeedsFeasible;
  boolean pods;
  boolean podsWithoutStatus;
  boolean nominations;
  List<String> podResources = List.of();
  final List<WatchedResource> watched = new ArrayList<>();
  Requeue requeue;
  Clock clock;
  Duration deadline;
  final Map<Class<? extends Plugin>, Duration> deadlines = new LinkedHashMap<>();

  private Traits(String name) {
    this.name = name;
  }

  /** A plugin of that name, a DNS label: what profiles call it. */
  public static Traits named(String name) {
    return new Traits(name);
  }

  /** The plugin's own version. */
  public Traits version(String version) {
    this.version = version;
    return this;
  }

  /** What profiles may configure; without it a profile that gives arguments is refused. */
  public Traits arguments(Arguments<?> arguments) {
    this.arguments = arguments;
    return this;
  }

  /** What the scheduler does with the scores. */
  public Traits normalization(Normalization normalization) {
    this.normalization = normalization;
    return this;
  }

  /** The cluster events that matter to pods that were turned down. */
  public Traits events(EventInterest... events) {
    this.events = List.of(events);
    return this;
  }

  /** JSON pointers of all pod fields that answers depend on; none: equal for all pods. */
  public Traits podFields(String... pointers) {
    this.podFields = List.of(pointers);
    return this;
  }

  /** Answers for a node depend on the pod, the node and the pods on it alone. */
  public Traits nodeLocal() {
    nodeLocal = true;
    return this;
  }

  /** Scores must see exactly the nodes that all filters left. */
  public Traits scoreNeedsFeasible() {
    scoreNeedsFeasible = true;
    return this;
  }

  /** Placed and assumed pods are mirrored; with resources, those that request one of them. */
  public Traits pods(String... resources) {
    pods = true;
    podResources = List.of(resources);
    return this;
  }

  /**
   * A mirrored pod's status may be an old one: pods that changed in nothing else don't come again.
   */
  public Traits podsWithoutStatus() {
    podsWithoutStatus = true;
    return this;
  }

  /** Nominated pods are mirrored too. */
  public Traits nominations() {
    nominations = true;
    return this;
  }

  /** A further kind is mirrored. */
  public Traits watch(WatchedResource kind) {
    watched.add(kind);
    return this;
  }

  /** The plugin speaks to the scheduler on its own. */
  public Traits requeue(Requeue requeue) {
    this.requeue = requeue;
    return this;
  }

  /** All that the plugin knows of time: it reads no other, and sets no timers but by it. */
  public Traits clock(Clock clock) {
    this.clock = clock;
    return this;
  }

  /** The time wanted for a call. */
  public Traits wantedDeadline(Duration deadline) {
    this.deadline = deadline;
    return this;
  }

  /** The time wanted for calls of one point, such as {@code Plugin.PreBind.class}. */
  public Traits wantedDeadline(Class<? extends Plugin> point, Duration deadline) {
    deadlines.put(point, deadline);
    return this;
  }
}
