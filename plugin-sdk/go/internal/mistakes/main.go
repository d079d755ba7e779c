// Mistakes are plugins with one usual mistake each, by the name in MISTAKE: what
// the conformance kit has to find.
package main

import (
	"encoding/json"
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

// unchecked decodes the arguments by hand: what it does not know it does not see.
type unchecked struct{ Weight int64 }

func (u *unchecked) Schema() []byte { return nil }

func (u *unchecked) Take(_ berth.Profile, arguments []byte) []string {
	if len(arguments) == 0 {
		return nil
	}
	if err := json.Unmarshal(arguments, u); err != nil {
		return []string{"arguments: " + err.Error()}
	}
	return nil
}

func (u *unchecked) Drop(string) {}

func (u *unchecked) score(_ *corev1.Pod, nodes *berth.Nodes) []int64 {
	return nodes.Scores(func(int, *corev1.Node) int64 { return u.Weight })
}

func main() {
	name := os.Getenv("MISTAKE")
	taking := &unchecked{Weight: 1}
	scores := map[string]scorer{
		"asked-only": appended, "too-short": tooShort, "negative": negative,
		"keeps-state": keepsState(), "order-matters": orderMatters(), "unchecked": taking.score,
	}
	plugin := &berth.Plugin{Name: name, ScoreNodes: scores[name], WantsPods: name == "negative"}
	if name == "unchecked" {
		plugin.Arguments = taking
	}
	berth.Main(plugin)
}
