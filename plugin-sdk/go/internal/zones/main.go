// Zones is the plugin with which the conformance kit asks about the queue's order
// and about pod groups: a group goes to one zone, best to small nodes, and pods of
// higher priority come first.
package main

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
)

func sortKey(pod *corev1.Pod) []int64 {
	if pod.Spec.Priority == nil {
		return nil
	}
	return []int64{-int64(*pod.Spec.Priority)}
}

func generatePlacements(_ *berth.PodGroup, _ *corev1.Pod, nodes *berth.Nodes) ([]berth.Placement, *berth.Status) {
	zones := map[string][]bool{}
	for index, node := range nodes.Asked() {
		zone, labelled := node.Labels[corev1.LabelTopologyZone]
		if !labelled {
			continue
		}
		if zones[zone] == nil {
			zones[zone] = make([]bool, nodes.Len())
		}
		zones[zone][index] = true
	}
	if len(zones) == 0 {
		return nil, berth.NewStatus(berth.Unschedulable, "no node has a zone")
	}
	var placements []berth.Placement
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		placements = append(placements, berth.Placement{Name: zone, Nodes: zones[zone]})
	}
	return placements, nil
}

func scorePlacements(
	_ *berth.PodGroup, _ *corev1.Pod, nodes *berth.Nodes, proposed []berth.ProposedPlacement,
) []int64 {
	points := make([]int64, len(proposed))
	for i, each := range proposed {
		for _, assigned := range each.Assignments {
			points[i] += berth.Allocatable(nodes.At(assigned.Node), corev1.ResourceCPU)
		}
	}
	return points
}

func placementFeasible(group *berth.PodGroup, _ *corev1.Pod, progress berth.PlacementProgress) *berth.Status {
	needed := len(group.Pods)
	switch {
	case progress.Scheduled >= needed:
		return nil
	case progress.Scheduled+progress.Remaining < needed:
		return berth.NewStatus(berth.Unschedulable, "all pods of the group are needed")
	}
	return berth.NewStatus(berth.Wait, "all pods of the group are needed")
}

func podGroupPostFilter(
	_ *berth.PodGroup, _ *corev1.Pod, nodes *berth.Nodes, _ berth.Verdicts,
) ([]berth.GroupPreemption, *berth.Status) {
	var proposals []berth.GroupPreemption
	for _, node := range nodes.Asked() {
		var victims []string
		for placed := range nodes.PodsOn(node.Name) {
			victims = append(victims, placed.UID)
		}
		if slices.Sort(victims); len(victims) > 0 {
			proposals = append(proposals, berth.GroupPreemption{VictimUIDs: victims})
		}
	}
	return proposals, nil
}

func main() {
	berth.Main(&berth.Plugin{
		Clock:              &berth.Clock{},
		Name:               "zones",
		WantsPods:          true,
		PlacementFeasible:  placementFeasible,
		PodGroupPostFilter: podGroupPostFilter,
		SortKey:            sortKey,
		GeneratePlacements: generatePlacements,
		ScorePlacements:    scorePlacements,
		Normalization:      berth.NormalizationMaxReverse,
	})
}
