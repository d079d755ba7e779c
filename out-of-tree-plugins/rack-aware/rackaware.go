package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/plugin-sdk/go/berth"
)

const (
	// preferredRacks is the annotation of a group's pods that names racks, the best
	// first, with commas between them.
	preferredRacks = "rack-aware.berth.dev/preferred-racks"
	// mostPreferred is how many names of that annotation are read.
	mostPreferred = 64
	// half of the score is for preferred racks, the other for few racks.
	half = 50
)

// settings are the plugin's arguments.
type settings struct {
	RackLabel string `json:"rackLabel" doc:"the label of nodes that names their rack"`
}

var arguments = berth.ArgumentsOf(settings{RackLabel: "topology.kubernetes.io/rack"}, hasRackLabel)

func plugin() *berth.Plugin {
	return &berth.Plugin{
		Name:            "rack-aware",
		Version:         "0.2.0",
		Arguments:       arguments,
		ScorePlacements: scorePlacements,
		PodFields:       []string{"/metadata/annotations", "/spec/schedulerName"},
	}
}

func hasRackLabel(_ berth.Profile, given settings) error {
	if problems := validation.IsQualifiedName(given.RackLabel); len(problems) > 0 {
		return &berth.ArgumentError{Path: "rackLabel", Problem: fmt.Sprintf("%q: %s", given.RackLabel, problems[0])}
	}
	return nil
}

// scorePlacements scores each placement by the nodes that the group's pods would
// go to in it: up to 50 for standing on preferred racks, and 50 for one rack.
func scorePlacements(
	_ *berth.PodGroup, pod *corev1.Pod, nodes *berth.Nodes, proposed []berth.ProposedPlacement,
) []int64 {
	worth := worthOf(pod.Annotations[preferredRacks])
	label := arguments.Of(pod).RackLabel
	points := make([]int64, len(proposed))
	for i, each := range proposed {
		points[i] = score(each.Assignments, nodes, label, worth)
	}
	return points
}

// score is what pods on these nodes make of a placement, 0 where there are none.
func score(assignments []berth.Assignment, nodes *berth.Nodes, label string, worth map[string]int64) int64 {
	if len(assignments) == 0 {
		return 0
	}
	racks := map[string]struct{}{}
	var preferred int64
	for _, each := range assignments {
		node := nodes.At(each.Node)
		rack, labelled := node.Labels[label]
		if !labelled {
			rack = "node " + node.Name // is no label's value: each is a rack of its own
		}
		racks[rack] = struct{}{}
		preferred += worth[rack]
	}
	return preferred/int64(len(assignments)) + half/int64(len(racks))
}

// worthOf says what a pod on each of the racks adds: the first in the list 50, the
// k-th the k-th part of that.
func worthOf(list string) map[string]int64 {
	worth := map[string]int64{}
	for k, name := range strings.SplitN(list, ",", mostPreferred+1) {
		if name = strings.TrimSpace(name); name != "" && k < mostPreferred {
			if _, named := worth[name]; !named {
				worth[name] = half / int64(k+1)
			}
		}
	}
	return worth
}
