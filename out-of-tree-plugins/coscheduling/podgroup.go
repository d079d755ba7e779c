package main

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/plugin-sdk/go/berth"
)

const (
	apiGroup   = "scheduling.x-k8s.io"
	apiVersion = "v1alpha1"
	groupLabel = apiGroup + "/pod-group"
)

var (
	watchedGroups  = berth.WatchedResource{Group: apiGroup, Version: apiVersion, Resource: "podgroups"}
	watchedMembers = berth.WatchedResource{Version: "v1", Resource: "pods", LabelSelector: groupLabel}
)

// PodGroup is what the plugin reads of the resource.
type PodGroup struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     PodGroupSpec      `json:"spec"`
	Status   PodGroupStatus    `json:"status"`

	demand demand
}

// PodGroupSpec says when a group may run. MinMember is how many pods have to find
// a place together, MinResources what they have to request together;
// ScheduleTimeoutSeconds how long those that have a place wait for the others.
type PodGroupSpec struct {
	MinMember              int32               `json:"minMember"`
	MinResources           corev1.ResourceList `json:"minResources"`
	ScheduleTimeoutSeconds *int32              `json:"scheduleTimeoutSeconds"`
}

// readPodGroup decodes a PodGroup.
//
// Errors: it is none, or asks for the impossible.
func readPodGroup(data []byte) (*PodGroup, error) {
	group := &PodGroup{}
	if err := json.Unmarshal(data, group); err != nil {
		return nil, err
	}
	var err error
	group.demand, err = demandOf(group)
	return group, err
}

// timeout is how long a pod of the group waits at Permit.
func (g *PodGroup) timeout(otherwise time.Duration) time.Duration {
	if seconds := g.Spec.ScheduleTimeoutSeconds; seconds != nil && *seconds > 0 {
		return time.Duration(*seconds) * time.Second
	}
	return otherwise
}

// groupKey names a PodGroup.
type groupKey struct{ namespace, name string }

func (k groupKey) String() string { return k.namespace + "/" + k.name }
