package dev.berth.plugin;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodSpec;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.ResourceRequirements;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Map;

/** Resources as the scheduler counts them: milli-cores of "cpu", units of anything else. */
public final class Resources {
  private static final BigDecimal MILLI = BigDecimal.valueOf(1000);

  private Resources() {}

  /**
   * What the scheduler counts for a pod. Containers and restartable init containers add up; an
   * ordinary init container runs beside the restartable ones before it, and the pod needs the
   * larger of both. A pod-level request replaces that.
   *
   * <p>Source: component-helpers/resource/helpers.go (Kubernetes v1.36).
   */
  public static long request(Pod pod, String resource) {
    PodSpec spec = pod.getSpec();
    long overhead = amount(resource, spec.getOverhead());
    if (spec.getResources() != null
        && spec.getResources().getRequests() != null
        && spec.getResources().getRequests().containsKey(resource)) {
      return amount(resource, spec.getResources().getRequests()) + overhead;
    }
    long running = 0;
    for (Container container : spec.getContainers()) {
      running += requested(container, resource);
    }
    long peak = 0;
    long sidecars = 0;
    for (Container container : spec.getInitContainers()) {
      long needed = requested(container, resource);
      peak = Math.max(peak, sidecars + needed);
      if ("Always".equals(container.getRestartPolicy())) {
        sidecars += needed;
      }
    }
    return Math.max(peak, running + sidecars) + overhead;
  }

  /** What pods may use of a node, 0 if it has none. */
  public static long allocatable(Node node, String resource) {
    return node.getStatus() == null ? 0 : amount(resource, node.getStatus().getAllocatable());
  }

  private static long requested(Container container, String resource) {
    ResourceRequirements resources = container.getResources();
    return resources == null ? 0 : amount(resource, resources.getRequests());
  }

  private static long amount(String resource, Map<String, Quantity> quantities) {
    Quantity quantity = quantities == null ? null : quantities.get(resource);
    if (quantity == null) {
      return 0;
    }
    BigDecimal number = Quantity.getAmountInBytes(quantity);
    BigDecimal counted = resource.equals("cpu") ? number.multiply(MILLI) : number;
    return counted.setScale(0, RoundingMode.CEILING).longValue();
  }
}
