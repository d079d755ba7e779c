package dev.berth.plugin;

import io.fabric8.kubernetes.api.model.Pod;

/**
 * A pod that counts on a node, which need not be known. The attempt is the one that assumed it, 0
 * in other stages.
 */
public record PlacedPod(Pod pod, String uid, String nodeName, PodStage stage, int attempt) {}
