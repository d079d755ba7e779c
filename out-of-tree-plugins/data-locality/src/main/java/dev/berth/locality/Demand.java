package dev.berth.locality;

import io.fabric8.kubernetes.api.model.Pod;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The data sets that a pod reads, and how near it requires them. */
record Demand(List<Dataset.Name> names, String required) {
  static final String DATASETS = "data-locality.berth.dev/datasets";
  static final String REQUIRED = "data-locality.berth.dev/required";

  /** What the pod's annotations say; data sets are those of its namespace. */
  static Demand of(Pod pod) {
    Map<String, String> annotations =
        Optional.ofNullable(pod.getMetadata().getAnnotations()).orElse(Map.of());
    String namespace = pod.getMetadata().getNamespace();
    List<Dataset.Name> names =
        Arrays.stream(annotations.getOrDefault(DATASETS, "").split(","))
            .map(String::strip)
            .filter(name -> !name.isEmpty())
            .distinct()
            .map(name -> new Dataset.Name(namespace, name))
            .toList();
    return new Demand(names, annotations.getOrDefault(REQUIRED, ""));
  }

  /** Whether nodes are turned down for it. */
  boolean isStrict() {
    return !names.isEmpty() && !required.isEmpty();
  }
}
