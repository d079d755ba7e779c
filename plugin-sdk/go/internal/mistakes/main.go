// Mistakes are plugins with one usual mistake each, by the name in MISTAKE: what
// the conformance kit has to find.
package main

import (
	"os"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
)

// appended has an entry for each node that is asked about, and for no other.
func appended(_ *corev1.Pod, nodes *berth.Nodes) (points []int64) {
	for range nodes.Asked() {
		points = append(points, 10)
	}
	return points
}

// tooShort leaves the last node out.
func tooShort(_ *corev1.Pod, nodes *berth.Nodes) []int64 { return make([]int64, nodes.Len()-1) }

func main() {
	name := os.Getenv("MISTAKE")
	scores := map[string]func(*corev1.Pod, *berth.Nodes) []int64{"asked-only": appended, "too-short": tooShort}
	berth.Main(&berth.Plugin{Name: name, ScoreNodes: scores[name]})
}
