package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The phases of a PodGroup. Finished and Failed are final.
// Source: scheduler-plugins apis/scheduling/v1alpha1/types.go (v0.30).
const (
	phasePending    = "Pending"
	phaseScheduling = "Scheduling"
	phaseRunning    = "Running"
	phaseFailed     = "Failed"
	phaseFinished   = "Finished"
)

// PodGroupStatus is what the plugin writes of the resource: how far the group has
// come, and of how many pods that is so. OccupiedBy names the owners of its pods.
type PodGroupStatus struct {
	Phase             string       `json:"phase,omitempty"`
	OccupiedBy        string       `json:"occupiedBy,omitempty"`
	Scheduled         int32        `json:"scheduled,omitempty"`
	Running           int32        `json:"running,omitempty"`
	Succeeded         int32        `json:"succeeded,omitempty"`
	Failed            int32        `json:"failed,omitempty"`
	ScheduleStartTime *metav1.Time `json:"scheduleStartTime,omitempty"`
}

func (s PodGroupStatus) equal(other PodGroupStatus) bool {
	if !s.ScheduleStartTime.Equal(other.ScheduleStartTime) {
		return false
	}
	s.ScheduleStartTime, other.ScheduleStartTime = nil, nil
	return s == other
}

// podState is what a group's status counts of a pod, whether it is alive or has ended.
type podState struct {
	name   string
	phase  corev1.PodPhase
	placed bool
	owners []string
}

func stateOf(pod *corev1.Pod) podState {
	state := podState{name: pod.Name, phase: pod.Status.Phase, placed: pod.Spec.NodeName != ""}
	for _, owner := range pod.OwnerReferences {
		state.owners = append(state.owners, pod.Namespace+"/"+owner.Name)
	}
	return state
}

// statusAfter is the status that follows the last one, as scheduler-plugins'
// controller has it: it goes from an empty phase to where the pods are at once.
// Source: scheduler-plugins pkg/controllers/podgroup_controller.go (v0.30).
func statusAfter(last PodGroupStatus, minMember int32, pods map[string]podState, now time.Time) PodGroupStatus {
	if last.Phase == phaseFinished || last.Phase == phaseFailed {
		return last
	}
	next := PodGroupStatus{OccupiedBy: last.OccupiedBy, ScheduleStartTime: last.ScheduleStartTime}
	for _, each := range pods {
		next.count(each)
	}
	if len(pods) == 0 || int32(len(pods)) < minMember {
		next.Phase = phasePending
		return next
	}
	if next.OccupiedBy == "" {
		next.OccupiedBy = ownersOf(pods)
	}
	if next.ScheduleStartTime == nil {
		began := metav1.NewTime(now.Truncate(time.Second))
		next.ScheduleStartTime = &began
	}
	switch {
	case next.Succeeded >= minMember:
		next.Phase = phaseFinished
	case next.Failed != 0 && next.Failed+next.Running+next.Succeeded >= minMember:
		next.Phase = phaseFailed
	case next.Succeeded+next.Running >= minMember:
		next.Phase = phaseRunning
	default:
		next.Phase = phaseScheduling
	}
	return next
}

func (s *PodGroupStatus) count(pod podState) {
	if pod.placed {
		s.Scheduled++
	}
	switch pod.phase {
	case corev1.PodRunning:
		s.Running++
	case corev1.PodSucceeded:
		s.Succeeded++
	case corev1.PodFailed:
		s.Failed++
	}
}

// ownersOf names the owners of the group's first pod.
func ownersOf(pods map[string]podState) string {
	first := slices.MinFunc(slices.Collect(maps.Values(pods)), func(a, b podState) int {
		return strings.Compare(a.name, b.name)
	})
	return strings.Join(slices.Sorted(slices.Values(first.owners)), ",")
}

// patch is the merge patch that gives a PodGroup this status.
func (s PodGroupStatus) patch() map[string]any {
	fields := map[string]any{
		"phase": s.Phase, "occupiedBy": s.OccupiedBy, "scheduled": s.Scheduled,
		"running": s.Running, "succeeded": s.Succeeded, "failed": s.Failed,
	}
	for name, value := range fields {
		if value == "" || value == int32(0) {
			fields[name] = nil // an absent field, as scheduler-plugins leaves it
		}
	}
	if s.ScheduleStartTime != nil {
		fields["scheduleStartTime"] = s.ScheduleStartTime
	}
	return map[string]any{"status": fields}
}

func (k groupKey) statusPath() string {
	return fmt.Sprintf("/apis/%s/%s/namespaces/%s/podgroups/%s/status", apiGroup, apiVersion, k.namespace, k.name)
}
