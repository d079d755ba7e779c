package berth_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

func ends(_ *berth.PodGroup, _ *corev1.Pod, _ *berth.Nodes) ([]berth.Placement, *berth.Status) {
	return []berth.Placement{{Name: "ends", Nodes: []bool{true, false, true}}, {Name: "middle", Nodes: []bool{false, true, false}}}, nil
}

func onThree(t *testing.T, plugin *berth.Plugin) *berthtest.Host {
	t.Helper()
	plugin.Name = "groups"
	return berthtest.Run(t, plugin, berthtest.Node("a"), berthtest.Node("b"), berthtest.Node("c"))
}

var pair = []*corev1.Pod{berthtest.Pod("p"), berthtest.Pod("q")}

func TestAGroupMayGoToTheNodesOfEachPlacement(t *testing.T) {
	host := onThree(t, &berth.Plugin{GeneratePlacements: ends})

	all, _ := host.GeneratePlacements("g", pair)
	some, _ := host.GeneratePlacements("g", pair, "c")

	if want := []berthtest.Placement{{Name: "ends", Nodes: []string{"a", "c"}}, {Name: "middle", Nodes: []string{"b"}}}; !reflect.DeepEqual(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
	if want := []berthtest.Placement{{Name: "ends", Nodes: []string{"c"}}}; !reflect.DeepEqual(some, want) {
		t.Errorf("got %v of c alone, want %v", some, want)
	}
}

func TestAGroupMayHaveNoPlacements(t *testing.T) {
	for name, test := range map[string]struct {
		placements []berth.Placement
		status     *berth.Status
		want       string
	}{
		"no opinion":    {nil, berth.NewStatus(berth.Skip), "CODE_SKIP"},
		"nowhere to go": {nil, berth.NewStatus(berth.Unschedulable, "no place is large enough"), "no place is large enough"},
		"no name":       {[]berth.Placement{{Nodes: make([]bool, 3)}}, nil, `groups: placement "": expected a name and 3 nodes, got 3`},
		"a wrong length": {
			[]berth.Placement{{Name: "x", Nodes: make([]bool, 2)}}, nil, `groups: placement "x": expected a name and 3 nodes, got 2`,
		},
		"a name twice": {
			[]berth.Placement{{Name: "x", Nodes: make([]bool, 3)}, {Name: "x", Nodes: make([]bool, 3)}}, nil, `groups: placement "x": two have this name`,
		},
		"a gate's word": {nil, berth.NewStatus(berth.Pending, "later"), "CODE_PENDING is no answer here"},
	} {
		t.Run(name, func(t *testing.T) {
			host := onThree(t, &berth.Plugin{
				GeneratePlacements: func(*berth.PodGroup, *corev1.Pod, *berth.Nodes) ([]berth.Placement, *berth.Status) {
					return test.placements, test.status
				},
			})

			placements, status := host.GeneratePlacements("g", pair)

			said := status.Code.String() + " " + strings.Join(status.Reasons, "; ")
			if len(placements) > 0 || !strings.Contains(said, test.want) {
				t.Errorf("got %v, %q, want %q", placements, said, test.want)
			}
		})
	}
}

func TestPlacementsAreScoredByWhereTheirPodsGo(t *testing.T) {
	var asked []string
	host := onThree(t, &berth.Plugin{
		Normalization: berth.NormalizationMinMax,
		ScorePlacements: func(
			group *berth.PodGroup, pod *corev1.Pod, nodes *berth.Nodes, proposed []berth.ProposedPlacement,
		) []int64 {
			points := []int64{}
			asked = append(asked, group.Name, pod.Name)
			for _, each := range proposed {
				point := int64(0)
				for _, assigned := range each.Assignments {
					asked = append(asked, assigned.Pod.Name+" on "+nodes.At(assigned.Node).Name)
					point -= int64(assigned.Node)
				}
				points = append(points, point)
			}
			return points
		},
	})

	points, status := host.ScorePlacements("g", pair, map[string]string{"p": "a", "q": "c"}, map[string]string{"q": "b"})

	if !slices.Equal(points, []int64{-2, -1}) || status.Code != berth.Success {
		t.Errorf("got %v, %v", points, status)
	}
	if want := []string{"g", "p", "p on a", "q on c", "q on b"}; !slices.Equal(asked, want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
}

func TestScoresOfPlacementsAreCheckedAsThoseOfNodes(t *testing.T) {
	for name, test := range map[string]struct {
		points []int64
		want   string
	}{
		"no opinion":     {nil, "CODE_SKIP"},
		"a wrong length": {[]int64{1, 2}, "groups: expected 1 scores, got 2"},
		"out of range":   {[]int64{101}, "0 to 100 is the range"},
	} {
		t.Run(name, func(t *testing.T) {
			host := onThree(t, &berth.Plugin{
				ScorePlacements: func(*berth.PodGroup, *corev1.Pod, *berth.Nodes, []berth.ProposedPlacement) []int64 {
					return test.points
				},
			})

			points, status := host.ScorePlacements("g", pair, map[string]string{"p": "a"})

			said := status.Code.String() + " " + strings.Join(status.Reasons, "; ")
			if points != nil || !strings.Contains(said, test.want) {
				t.Errorf("got %v, %q, want %q", points, said, test.want)
			}
		})
	}
}
