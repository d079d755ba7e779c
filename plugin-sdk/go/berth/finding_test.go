package berth_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

var (
	wrongTeam = berth.Reject("node(s) belong to another team")
	noTeam    = berth.NewReason(berth.UnschedulableAndUnresolvable, "node(s) belong to no team")
)

func teamNodes() *berth.Plugin {
	return &berth.Plugin{
		Name: "team-nodes",
		Filter: func(pod *corev1.Pod, node *corev1.Node) *berth.Reason {
			switch team, owned := node.Labels["team"]; {
			case !owned:
				return noTeam
			case team != pod.Labels["team"]:
				return wrongTeam
			}
			return nil
		},
		Score: func(_ *corev1.Pod, node *corev1.Node) int64 { return int64(len(node.Name)) },
	}
}

func team(name, team string) *corev1.Node {
	return berthtest.Node(name, berthtest.Labels{"team": team})
}

var bluePod = berthtest.Pod("p", berthtest.Labels{"team": "blue"})

func TestEachNodeHasItsReason(t *testing.T) {
	host := berthtest.Run(t, teamNodes(), team("red", "red"), berthtest.Node("none"), team("blue", "blue"))

	verdict := host.Filter(bluePod)

	want := map[string]berth.Reason{"red": *wrongTeam, "none": *noTeam}
	if !maps.Equal(want, verdict.Rejected) {
		t.Errorf("rejected %v, want %v", verdict.Rejected, want)
	}
}

func TestOnlyCandidatesAreAskedAbout(t *testing.T) {
	asked := []string{}
	plugin := &berth.Plugin{Name: "asks", Filter: func(_ *corev1.Pod, node *corev1.Node) *berth.Reason {
		asked = append(asked, node.Name)
		return wrongTeam
	}}
	nodes := []*corev1.Node{}
	for _, name := range strings.Split("abcdefghij", "") {
		nodes = append(nodes, berthtest.Node(name))
	}
	host := berthtest.Run(t, plugin, nodes...)
	host.Once = true

	host.Filter(bluePod, "b", "j")

	if want := []string{"b", "j"}; !slices.Equal(want, asked) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
}

func TestScoresAreThoseOfNodesThatPass(t *testing.T) {
	host := berthtest.Run(t, teamNodes(), team("red", "red"), team("b", "blue"), team("blue", "blue"))

	_, scores := host.FilterScore(bluePod)

	if want := map[string]int64{"b": 1, "blue": 4}; !maps.Equal(want, scores) {
		t.Errorf("scores %v, want %v", scores, want)
	}
}

func TestNothingIsScoredWhereNothingPasses(t *testing.T) {
	host := berthtest.Run(t, teamNodes(), team("red", "red"))

	if _, scores := host.FilterScore(bluePod); scores != nil {
		t.Errorf("scores %v of nodes that were turned down", scores)
	}
}

func TestVectorFormsAnswerForAllNodes(t *testing.T) {
	for name, points := range map[string][]int64{
		"bytes": {0, 255, 3}, "ints": {-1, 256, 1 << 30}, "longs": {0, 1 << 40, -(1 << 40)},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := &berth.Plugin{
				Name: "vectors",
				FilterNodes: func(_ *corev1.Pod, nodes *berth.Nodes) berth.Verdicts {
					return berth.Verdicts{Codes: make([]uint8, nodes.Len())}
				},
				ScoreNodes:    func(*corev1.Pod, *berth.Nodes) []int64 { return points },
				Normalization: berth.NormalizationMinMax,
			}
			host := berthtest.Run(t, plugin, berthtest.Node("a"), berthtest.Node("b"), berthtest.Node("c"))

			scores := host.Score(bluePod)

			if want := map[string]int64{"a": points[0], "b": points[1], "c": points[2]}; !maps.Equal(want, scores) {
				t.Errorf("scores %v, want %v", scores, want)
			}
		})
	}
}

func TestWhatCannotBeSentFailsTheAttemptWithAText(t *testing.T) {
	filtering := func(codes ...uint8) *berth.Plugin {
		return &berth.Plugin{Name: "bad", FilterNodes: func(*corev1.Pod, *berth.Nodes) berth.Verdicts {
			return berth.Verdicts{Codes: codes, Reasons: []berth.Reason{*wrongTeam}}
		}}
	}
	for name, test := range map[string]struct {
		plugin *berth.Plugin
		text   string
	}{
		"too few codes":         {filtering(0), "expected 2 codes, got 1"},
		"a code without reason": {filtering(0, 2), "code 2 has no reason: there are 1"},
		"a panic": {&berth.Plugin{Name: "bad", Filter: func(*corev1.Pod, *corev1.Node) *berth.Reason {
			panic("out of luck")
		}}, "out of luck"},
		"a status of another point": {&berth.Plugin{Name: "bad", PreFilter: preFilter(&berth.Status{Code: 5})}, "no answer here"},
		"a refusal without reasons": {&berth.Plugin{Name: "bad", PreFilter: preFilter(berth.NewStatus(berth.Pending))}, "without a reason"},
	} {
		t.Run(name, func(t *testing.T) {
			host := berthtest.Run(t, test.plugin, berthtest.Node("a"), berthtest.Node("b"))

			status := host.FilterStatus(bluePod)

			if status.Code != berth.Error || !strings.Contains(status.Reasons[0], test.text) {
				t.Errorf("got %v, want an error with %q", status, test.text)
			}
		})
	}
}

func TestScoresOutOfRangeFailTheAttempt(t *testing.T) {
	plugin := teamNodes()
	plugin.Score = func(*corev1.Pod, *corev1.Node) int64 { return 101 }
	plugin.Filter = nil
	plugin.PreFilter = preFilter(berth.NewStatus(berth.Skip))
	host := berthtest.Connect(t, berthtest.Serve(t, plugin))
	host.Cluster.PutNode(berthtest.Node("n"))
	host.Start(nil)

	status := host.ScoreStatus(bluePod)

	if want := "team-nodes: scores from 0 to 101 without normalization: 0 to 100 is the range"; status.Reasons[0] != want {
		t.Errorf("got %v, want %q", status, want)
	}
}

func TestManyReasonsShareTheLastRow(t *testing.T) {
	plugin := &berth.Plugin{Name: "verbose", Filter: func(_ *corev1.Pod, node *corev1.Node) *berth.Reason {
		return berth.Reject("not " + node.Name)
	}}
	nodes := []*corev1.Node{}
	for i := range 300 {
		nodes = append(nodes, berthtest.Node(strings.Repeat("n", i+1)))
	}
	host := berthtest.Run(t, plugin, nodes...)

	rejected := host.Filter(bluePod).Rejected

	if rejected["n"].Text != "not n" || !strings.HasPrefix(rejected[nodes[299].Name].Text, "further reasons") {
		t.Errorf("first %q, last %q", rejected["n"].Text, rejected[nodes[299].Name].Text)
	}
}

func TestSimulatedEvictionsAreSeenByFilterAndPutBack(t *testing.T) {
	full := berth.Reject("node(s) were full")
	plugin := &berth.Plugin{
		Name:      "one-pod",
		WantsPods: true,
		FilterNodes: func(_ *corev1.Pod, nodes *berth.Nodes) berth.Verdicts {
			verdicts := berth.Verdicts{Codes: make([]uint8, nodes.Len()), Reasons: []berth.Reason{*full}}
			for index, node := range nodes.Asked() {
				for range nodes.PodsOn(node.Name) {
					verdicts.Codes[index] = 1
				}
			}
			return verdicts
		},
	}
	host := berthtest.Run(t, plugin, berthtest.Node("a"), berthtest.Node("b"))
	resident := berthtest.Pod("resident")
	host.Cluster.PutPod(resident, "b", berth.Placed, 0)

	without := host.FilterWithout(bluePod, "b", resident)

	if without != nil {
		t.Errorf("without its pod the node was turned down: %v", without)
	}
	if want := []string{"a"}; !slices.Equal(want, host.Filter(bluePod).Passing()) {
		t.Error("the pod that was simulated as removed did not come back")
	}
}

func TestPostFilterNominates(t *testing.T) {
	plugin := &berth.Plugin{Name: "maker", PostFilter: postFilter}
	host := berthtest.Run(t, plugin, berthtest.Node("a"), berthtest.Node("b"))

	nomination, status := host.PostFilter(bluePod, *wrongTeam)

	if status.Code != berth.Success || nomination.NodeName != "b" || nomination.VictimUIDs[0] != wrongTeam.Text {
		t.Errorf("got %v, %v", nomination, status)
	}
}
