package berth

import corev1 "k8s.io/api/core/v1"

// Request gives what the scheduler counts for a pod: milli-cores of "cpu", units
// of anything else.
//
// Containers and restartable init containers add up; an ordinary init container
// runs beside the restartable ones before it, and the pod needs the larger of
// both. A pod-level request replaces that.
// Source: component-helpers/resource/helpers.go (Kubernetes v1.36).
func Request(pod *corev1.Pod, resource corev1.ResourceName) int64 {
	overhead := amount(resource, pod.Spec.Overhead)
	if level := pod.Spec.Resources; level != nil {
		if _, given := level.Requests[resource]; given {
			return amount(resource, level.Requests) + overhead
		}
	}
	var running, peak, sidecars int64
	for i := range pod.Spec.Containers {
		running += amount(resource, pod.Spec.Containers[i].Resources.Requests)
	}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		needed := amount(resource, container.Resources.Requests)
		peak = max(peak, sidecars+needed)
		if policy := container.RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			sidecars += needed
		}
	}
	return max(peak, running+sidecars) + overhead
}

// Allocatable gives what pods may use of a node: milli-cores of "cpu", units of
// anything else, 0 if it has none.
func Allocatable(node *corev1.Node, resource corev1.ResourceName) int64 {
	return amount(resource, node.Status.Allocatable)
}

func amount(resource corev1.ResourceName, quantities corev1.ResourceList) int64 {
	quantity, given := quantities[resource]
	switch {
	case !given:
		return 0
	case resource == corev1.ResourceCPU:
		return quantity.MilliValue()
	}
	return quantity.Value()
}
