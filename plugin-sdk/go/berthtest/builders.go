package berthtest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Part is something that a node or pod of a test has.
type Part interface{ object() }

// Labels are metadata.labels.
type Labels map[string]string

// Annotations are metadata.annotations.
type Annotations map[string]string

// Resources are a node's allocatable, or a pod's requests, as quantities.
type Resources map[string]string

// Namespace is a pod's; "default" without it.
type Namespace string

// Priority is a pod's.
type Priority int32

// NodeName puts a pod on a node.
type NodeName string

func (Labels) object()      {}
func (Annotations) object() {}
func (Resources) object()   {}
func (Namespace) object()   {}
func (Priority) object()    {}
func (NodeName) object()    {}

// Node makes a node; with 8 CPUs, 32Gi and room for 110 pods unless Resources
// say otherwise.
func Node(name string, parts ...Part) *corev1.Node {
	node := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name)},
	}
	resources := quantities(Resources{"cpu": "8", "memory": "32Gi", "pods": "110"})
	for _, part := range parts {
		switch p := part.(type) {
		case Labels:
			node.Labels = p
		case Annotations:
			node.Annotations = p
		case Resources:
			resources = quantities(p)
		}
	}
	node.Status.Allocatable, node.Status.Capacity = resources, resources
	return node
}

// Pod makes a pod with one container; its UID is made from its name.
func Pod(name string, parts ...Part) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	container := corev1.Container{Name: "main", Image: "image"}
	for _, part := range parts {
		switch p := part.(type) {
		case Labels:
			pod.Labels = p
		case Annotations:
			pod.Annotations = p
		case Resources:
			container.Resources.Requests = quantities(p)
		case Namespace:
			pod.Namespace = string(p)
		case Priority:
			pod.Spec.Priority = (*int32)(&p)
		case NodeName:
			pod.Spec.NodeName = string(p)
		}
	}
	pod.Spec.SchedulerName = Profile
	pod.Spec.Containers = []corev1.Container{container}
	pod.UID = types.UID("pod-" + pod.Namespace + "-" + name)
	return pod
}

func quantities(texts Resources) corev1.ResourceList {
	made := corev1.ResourceList{}
	for name, text := range texts {
		made[corev1.ResourceName(name)] = resource.MustParse(text)
	}
	return made
}
