package main

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

const rackLabel = "topology.kubernetes.io/rack"

func onRack(name, rack string) *corev1.Node {
	return berthtest.Node(name, berthtest.Labels{rackLabel: rack})
}

// racks are two of two nodes, and two nodes without one.
func racks() []*corev1.Node {
	return []*corev1.Node{
		onRack("a1", "a"), onRack("a2", "a"), onRack("b1", "b"), onRack("b2", "b"),
		berthtest.Node("x"), berthtest.Node("y"),
	}
}

// pair are two pods of a group that prefers these racks.
func pair(preferred string) []*corev1.Pod {
	pods := []*corev1.Pod{berthtest.Pod("p"), berthtest.Pod("q")}
	for _, each := range pods {
		each.Annotations = map[string]string{preferredRacks: preferred}
	}
	return pods
}

func TestScores(t *testing.T) {
	for _, test := range []struct {
		name      string
		preferred string
		p, q      string
		want      int64
	}{
		{"one rack, none preferred", "", "a1", "a2", 50},
		{"two racks", "", "a1", "b1", 25},
		{"the preferred rack", "b", "b1", "b2", 100},
		{"another rack", "b", "a1", "a2", 50},
		{"the second of the list", "b, a", "a1", "a2", 75},
		{"half of the pods on the preferred rack", "b", "a1", "b1", 50},
		{"a rack that is named twice has its first place", "a,a", "a1", "a2", 100},
		{"a rack that is not there", "c", "a1", "a2", 50},
		{"nodes without a rack are one each", "", "x", "y", 25},
		{"an empty name is no rack", " ,", "a1", "a2", 50},
		{"behind the names that are read", strings.Repeat("-,", mostPreferred) + "a", "a1", "a2", 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			host := berthtest.Run(t, plugin(), racks()...)

			points, status := host.ScorePlacements("g", pair(test.preferred), map[string]string{"p": test.p, "q": test.q})

			if status.Code != berth.Success || !slices.Equal([]int64{test.want}, points) {
				t.Errorf("scored %v (%v), want %d", points, status, test.want)
			}
		})
	}
}

func TestThePreferredRackIsBestOfAll(t *testing.T) {
	host := berthtest.Run(t, plugin(), racks()...)

	points, _ := host.ScorePlacements("g", pair("b"),
		map[string]string{"p": "a1", "q": "a2"},
		map[string]string{"p": "b1", "q": "b2"},
		map[string]string{"p": "a1", "q": "b1"},
	)

	if want := []int64{50, 100, 50}; !slices.Equal(want, points) {
		t.Errorf("scored %v, want %v", points, want)
	}
}

func TestNoPodsAreWorthNothing(t *testing.T) {
	if points := score(nil, nil, rackLabel, worthOf("a")); points != 0 {
		t.Errorf("scored %d", points)
	}
}

func TestTheLabelIsAnArgument(t *testing.T) {
	node := func(name string) *corev1.Node { return berthtest.Node(name, berthtest.Labels{"example.com/row": "1"}) }
	host := berthtest.RunWith(t, plugin(), map[string]string{"rackLabel": "example.com/row"}, node("m"), node("n"))

	points, _ := host.ScorePlacements("g", pair(""), map[string]string{"p": "m", "q": "n"})

	if !slices.Equal([]int64{half}, points) {
		t.Errorf("scored %v, want one rack's", points)
	}
}

func TestALabelThatIsNone(t *testing.T) {
	err := hasRackLabel(berth.Profile{}, settings{RackLabel: "no label"})

	if err == nil || !strings.HasPrefix(err.Error(), `rackLabel: "no label": `) {
		t.Errorf("said %v", err)
	}
}
