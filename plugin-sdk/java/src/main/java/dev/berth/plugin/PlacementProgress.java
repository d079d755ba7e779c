package dev.berth.plugin;

/**
 * How far an attempt at a group has come: its pods that are still to be tried, and those that have
 * a node.
 */
public record PlacementProgress(int remaining, int scheduled) {}
