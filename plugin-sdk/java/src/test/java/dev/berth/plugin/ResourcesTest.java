package dev.berth.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.berth.plugin.testing.Make;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.Quantity;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ResourcesTest {
  private static Container container(String cpu, String restartPolicy) {
    return new ContainerBuilder()
        .withName("c" + cpu)
        .withRestartPolicy(restartPolicy)
        .withNewResources()
        .addToRequests("cpu", new Quantity(cpu))
        .endResources()
        .build();
  }

  @Test
  void cpuCountsInThousandthsAndMemoryInBytes() {
    Pod pod = Make.requesting(Make.pod("p"), Map.of("cpu", "1500m", "memory", "2Ki"));

    assertEquals(1500, Resources.request(pod, "cpu"));
    assertEquals(2048, Resources.request(pod, "memory"));
    assertEquals(0, Resources.request(pod, "nvidia.com/gpu"));
    assertEquals(8000, Resources.allocatable(Make.node("n"), "cpu"));
  }

  @Test
  void initContainersRunBesideTheSidecarsBeforeThem() {
    Pod pod =
        Make.requesting(Make.pod("p"), Map.of("cpu", "1"))
            .edit()
            .editSpec()
            .addToInitContainers(container("500m", "Always"), container("2", null))
            .addToOverhead("cpu", new Quantity("100m"))
            .endSpec()
            .build();

    assertEquals(2600, Resources.request(pod, "cpu"));
  }

  @Test
  void theRequestOfThePodReplacesItsContainers() {
    Pod pod =
        Make.requesting(Make.pod("p"), Map.of("cpu", "1", "memory", "1Gi"))
            .edit()
            .editSpec()
            .withNewResources()
            .addToRequests("cpu", new Quantity("3"))
            .endResources()
            .endSpec()
            .build();

    assertEquals(3000, Resources.request(pod, "cpu"));
    assertEquals(1L << 30, Resources.request(pod, "memory"));
  }
}
