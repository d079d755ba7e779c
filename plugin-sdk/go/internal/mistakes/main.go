// Mistakes are plugins with one usual mistake each, by the name in MISTAKE: what
// the conformance kit has to find.
package main

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/plugin-sdk/go/berth"
)

type scorer = func(*corev1.Pod, *berth.Nodes) []int64

// appended has an entry for each node that is asked about, and for no other.
func appended(_ *corev1.Pod, nodes *berth.Nodes) (points []int64) {
	for range nodes.Asked() {
		points = append(points, 10)
	}
	return points
}

// tooShort leaves the last node out.
func tooShort(_ *corev1.Pod, nodes *berth.Nodes) []int64 { return make([]int64, nodes.Len()-1) }

// negative counts the pods on a node below 0.
func negative(_ *corev1.Pod, nodes *berth.Nodes) []int64 {
	return nodes.Scores(func(_ int, node *corev1.Node) (points int64) {
		for range nodes.PodsOn(node.Name) {
			points--
		}
		return points
	})
}

// keepsState scores nodes in turns.
func keepsState() scorer {
	turn := int64(0)
	return func(_ *corev1.Pod, nodes *berth.Nodes) []int64 {
		return nodes.Scores(func(int, *corev1.Node) int64 {
			turn++
			return turn % 7
		})
	}
}

// orderMatters scores pods by the order in which it was asked about them.
func orderMatters() scorer {
	numbers := map[types.UID]int64{}
	return func(pod *corev1.Pod, nodes *berth.Nodes) []int64 {
		if _, known := numbers[pod.UID]; !known {
			numbers[pod.UID] = int64(len(numbers))
		}
		return nodes.Scores(func(int, *corev1.Node) int64 { return 100 / (1 + numbers[pod.UID]) })
	}
}

func main() {
	name := os.Getenv("MISTAKE")
	scores := map[string]scorer{
		"asked-only": appended, "too-short": tooShort, "negative": negative,
		"keeps-state": keepsState(), "order-matters": orderMatters(),
	}
	berth.Main(&berth.Plugin{Name: name, ScoreNodes: scores[name], WantsPods: name == "negative"})
}
