package dev.berth.plugin;

import berth.plugin.v1.State;

/** Why a pod counts on a node. */
public enum PodStage {
  /** The scheduler decided so. */
  ASSUMED(State.PodStage.POD_STAGE_ASSUMED),
  /** The API server says so. */
  PLACED(State.PodStage.POD_STAGE_PLACED),
  /** Room is being made for it there. */
  NOMINATED(State.PodStage.POD_STAGE_NOMINATED);

  final State.PodStage message;

  PodStage(State.PodStage message) {
    this.message = message;
  }

  static PodStage of(State.PodStage message) {
    for (PodStage each : values()) {
      if (each.message == message) {
        return each;
      }
    }
    return null;
  }
}
