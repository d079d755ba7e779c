package dev.berth.plugin;

import berth.plugin.v1.Identity.ActionType;

/** What happened to an object, in kube-scheduler's words. */
public enum Action {
  ADD,
  DELETE,
  UPDATE,
  UPDATE_NODE_ALLOCATABLE,
  UPDATE_NODE_LABEL,
  UPDATE_NODE_TAINT,
  UPDATE_NODE_CONDITION,
  UPDATE_NODE_ANNOTATION,
  UPDATE_NODE_DECLARED_FEATURE,
  UPDATE_POD_LABEL,
  UPDATE_POD_SCALE_DOWN,
  UPDATE_POD_TOLERATION,
  UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
  UPDATE_POD_GENERATED_RESOURCE_CLAIM;

  private static final String PREFIX = "ACTION_TYPE_";

  final ActionType message = ActionType.valueOf("ACTION_TYPE_" + name());

  static Action of(ActionType message) {
    return valueOf(message.name().substring(PREFIX.length()));
  }
}
