package dev.berth.plugin;

import berth.plugin.v1.State;

/** Names an object of a watched kind; the resource is the plural. */
public record ObjectKey(
    String group, String version, String resource, String namespace, String name) {
  static ObjectKey of(State.ObjectKey key) {
    return new ObjectKey(
        key.getGroup(), key.getVersion(), key.getResource(), key.getNamespace(), key.getName());
  }
}
