package dev.berth.plugin;

/**
 * How an attempt ended: on which node, empty if none was chosen, and whether this plugin is among
 * those that turned the pod down.
 */
public record Outcome(CycleOutcome result, String nodeName, boolean rejected) {}
