package dev.berth.plugin;

import berth.plugin.v1.Identity;
import java.util.List;

/**
 * Cluster events that may let a pod fit which this plugin turned down; all given conditions must
 * hold.
 */
public final class EventInterest {
  private final Identity.EventInterest.Builder message;
  private boolean askHint = true;

  private EventInterest(String resource, Action... actions) {
    message = Identity.EventInterest.newBuilder().setResource(resource);
    for (Action action : actions) {
      message.addActions(action.message);
    }
  }

  /** Events of "Node", "Pod", or a watched kind as "podgroups.v1alpha1.group". */
  public static EventInterest of(String resource, Action... actions) {
    return new EventInterest(resource, actions);
  }

  /** One of these JSON pointers must have changed. */
  public EventInterest changedFields(String... pointers) {
    message.addAllChangedFields(List.of(pointers));
    return this;
  }

  /** The object must match this selector. */
  public EventInterest labelSelector(String selector) {
    message.setLabelSelector(selector);
    return this;
  }

  /** The pod of the event must request one of these. */
  public EventInterest podResources(String... resources) {
    message.addAllPodResources(List.of(resources));
    return this;
  }

  /** The object must be in the waiting pod's namespace. */
  public EventInterest sameNamespace() {
    message.setSameNamespace(true);
    return this;
  }

  /** Labels that object and waiting pod must carry with equal values. */
  public EventInterest equalLabels(String... keys) {
    message.addAllEqualLabels(List.of(keys));
    return this;
  }

  /** A label of the waiting pod whose value must be the object's name. */
  public EventInterest podLabelNamesObject(String key) {
    message.setPodLabelNamesObject(key);
    return this;
  }

  /** These conditions suffice: the plugin's hint is not asked. */
  public EventInterest noHint() {
    askHint = false;
    return this;
  }

  Identity.EventInterest message(boolean hints) {
    return message.clone().setAskHint(hints && askHint).build();
  }
}
