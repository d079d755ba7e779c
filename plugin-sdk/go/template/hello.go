// Hello keeps pods on their own team's nodes, and off nodes without a team where it can: a
// template to copy. Teams are named by a label of nodes and pods.
package main

import (
	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
)

type settings struct {
	Label string `json:"label" doc:"the label of nodes and pods that names a team"`
}

var (
	arguments = berth.ArgumentsOf(settings{Label: "team"})
	otherTeam = berth.Reject("node(s) belonged to another team")
)

// filter turns down the nodes of other teams.
func filter(pod *corev1.Pod, node *corev1.Node) *berth.Reason {
	label := arguments.Of(pod).Label
	if team, owned := node.Labels[label]; owned && team != pod.Labels[label] {
		return otherTeam
	}
	return nil
}

// score prefers the team's own nodes to those without a team.
func score(pod *corev1.Pod, node *corev1.Node) int64 {
	if _, owned := node.Labels[arguments.Of(pod).Label]; owned {
		return 100
	}
	return 0
}

// hint tries a pod again when a node is not another team's any more.
func hint(pod *corev1.Pod, event berth.Event) bool {
	_, node, err := event.Nodes()
	return err != nil || node == nil || filter(pod, node) == nil
}

func plugin() *berth.Plugin {
	return &berth.Plugin{
		Name:         "hello",
		Version:      "0.1.0",
		Arguments:    arguments,
		Filter:       filter,
		Score:        score,
		QueueingHint: hint,
		Events:       []berth.EventInterest{{Resource: "Node", Actions: []berth.Action{berth.Add, berth.UpdateNodeLabel}}},
		PodFields:    []string{"/metadata/labels", "/spec/schedulerName"},
		NodeLocal:    true,
	}
}

func main() { berth.Main(plugin()) }
