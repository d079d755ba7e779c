package dev.berth.plugin.testing;

import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import java.util.Map;

/** Nodes and pods of tests; {@code .edit()} of either changes what is missing here. */
public final class Make {
  private static final Map<String, Quantity> NODE_RESOURCES =
      Map.of("cpu", new Quantity("8"), "memory", new Quantity("32Gi"), "pods", new Quantity("110"));

  private Make() {}

  /** A node without labels, with 8 CPUs, 32Gi and room for 110 pods. */
  public static Node node(String name) {
    return node(name, Map.of());
  }

  /** The same with labels. */
  public static Node node(String name, Map<String, String> labels) {
    return new NodeBuilder()
        .withNewMetadata()
        .withName(name)
        .withUid("node-" + name)
        .withLabels(labels)
        .endMetadata()
        .withNewStatus()
        .withCapacity(NODE_RESOURCES)
        .withAllocatable(NODE_RESOURCES)
        .endStatus()
        .build();
  }

  /** A pod of the namespace default with one container; its UID is made from its name. */
  public static Pod pod(String name) {
    return pod(name, Map.of());
  }

  /** The same with labels. */
  public static Pod pod(String name, Map<String, String> labels) {
    return new PodBuilder()
        .withNewMetadata()
        .withName(name)
        .withNamespace("default")
        .withUid("pod-default-" + name)
        .withLabels(labels)
        .endMetadata()
        .withNewSpec()
        .withSchedulerName(Host.PROFILE)
        .addNewContainer()
        .withName("main")
        .withImage("image")
        .endContainer()
        .endSpec()
        .withNewStatus()
        .withPhase("Pending")
        .endStatus()
        .build();
  }

  /** That pod with annotations. */
  public static Pod annotated(Pod pod, Map<String, String> annotations) {
    return pod.edit().editMetadata().withAnnotations(annotations).endMetadata().build();
  }

  /** That pod with what its container requests. */
  public static Pod requesting(Pod pod, Map<String, String> requests) {
    PodBuilder made = pod.edit();
    requests.forEach(
        (resource, quantity) ->
            made.editSpec()
                .editFirstContainer()
                .editOrNewResources()
                .addToRequests(resource, new Quantity(quantity))
                .endResources()
                .endContainer()
                .endSpec());
    return made.build();
  }
}
