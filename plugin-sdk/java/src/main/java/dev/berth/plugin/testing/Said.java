package dev.berth.plugin.testing;

import java.util.List;

/**
 * A message of the plugin's own: REQUEUE, REQUEUE_ALL, ALLOW_WAITING, REJECT_WAITING or SORT_KEYS.
 */
public record Said(String what, List<String> uids, String cause) {}
