package dev.berth.plugin;

/** A kind beside nodes and pods; an empty group is the core group, an empty selector takes all. */
public record WatchedResource(String group, String version, String resource, String labelSelector) {
  /** All objects of a kind; the resource is its plural. */
  public static WatchedResource of(String group, String version, String resource) {
    return new WatchedResource(group, version, resource, "");
  }
}
