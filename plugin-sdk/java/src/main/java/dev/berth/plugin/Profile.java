package dev.berth.plugin;

/**
 * A scheduler profile that uses the plugin. In a shadow profile answers are compared and counted,
 * and change nothing.
 */
public record Profile(String name, boolean shadow) {}
