package berth_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

func asking(cpu string, always bool) corev1.Container {
	container := corev1.Container{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
	}}
	if always {
		policy := corev1.ContainerRestartPolicyAlways
		container.RestartPolicy = &policy
	}
	return container
}

func TestRequestsAreWhatTheSchedulerCounts(t *testing.T) {
	for name, test := range map[string]struct {
		init, running []corev1.Container
		want          int64
	}{
		"containers add up":                   {nil, []corev1.Container{asking("1", false), asking("500m", false)}, 1500},
		"the larger init container wins":      {[]corev1.Container{asking("2", false)}, []corev1.Container{asking("1", false)}, 2000},
		"sidecars run beside":                 {[]corev1.Container{asking("1", true)}, []corev1.Container{asking("1", false)}, 2000},
		"an init container runs beside those": {[]corev1.Container{asking("1", true), asking("3", false)}, []corev1.Container{asking("1", false)}, 4000},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: test.init, Containers: test.running}}

			if got := berth.Request(pod, "cpu"); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestAPodLevelRequestReplacesTheContainers(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{asking("5", false)},
		Resources:  &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		Overhead:   corev1.ResourceList{"cpu": resource.MustParse("100m")},
	}}

	if got := berth.Request(pod, "cpu"); got != 1100 {
		t.Errorf("got %d", got)
	}
}

func TestAllocatableIsInUnitsButForCPU(t *testing.T) {
	node := berthtest.Node("n", berthtest.Resources{"cpu": "1500m", "memory": "1Ki"})

	if cpu, memory := berth.Allocatable(node, "cpu"), berth.Allocatable(node, "memory"); cpu != 1500 || memory != 1024 {
		t.Errorf("cpu %d, memory %d", cpu, memory)
	}
}
