package berthtest_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

// ended is a test that a harness ends, with what it says.
type ended struct {
	testing.TB
	text string
}

func (e *ended) Helper()           {}
func (e *ended) Cleanup(f func())  { e.TB.Cleanup(f) }
func (e *ended) Fatal(args ...any) { e.Fatalf("%s", fmt.Sprint(args...)) }
func (e *ended) Fatalf(format string, args ...any) {
	e.text = fmt.Sprintf(format, args...)
	panic(e)
}

// saidOf gives what the harness ends a test with.
func saidOf(t *testing.T, plugin *berth.Plugin, asks func(*berthtest.Host)) string {
	t.Helper()
	inner := &ended{TB: t}
	host := berthtest.Run(inner, plugin, berthtest.Node("a"), berthtest.Node("b"), berthtest.Node("c"))
	func() {
		defer func() { _ = recover() }()
		asks(host)
	}()
	return inner.text
}

func TestATestEndsWhereAVectorHasAnEntryForEachAskedNodeOnly(t *testing.T) {
	plugin := &berth.Plugin{Name: "appends", ScoreNodes: func(_ *corev1.Pod, nodes *berth.Nodes) (points []int64) {
		for range nodes.Asked() {
			points = append(points, 1)
		}
		return points
	}}

	said := saidOf(t, plugin, func(host *berthtest.Host) { host.Score(berthtest.Pod("p")) })

	if !strings.Contains(said, "expected 3 scores, got 1") {
		t.Errorf("the harness said %q", said)
	}
}

func TestATestEndsOnErrorWithThePluginsText(t *testing.T) {
	plugin := &berth.Plugin{Name: "panics", Filter: func(*corev1.Pod, *corev1.Node) *berth.Reason { panic("out of luck") }}

	said := saidOf(t, plugin, func(host *berthtest.Host) { host.Filter(berthtest.Pod("p")) })

	if !strings.Contains(said, "Filter answered ERROR") || !strings.Contains(said, "out of luck") {
		t.Errorf("the harness said %q", said)
	}
}

func TestATestEndsWhereANodeHasAnotherScoreAlone(t *testing.T) {
	asked := 0
	plugin := &berth.Plugin{Name: "counts", Score: func(*corev1.Pod, *corev1.Node) int64 {
		asked++
		return int64(asked)
	}}

	said := saidOf(t, plugin, func(host *berthtest.Host) { host.Score(berthtest.Pod("p")) })

	if said != "a asked about alone: 4, and together with the others: 1" {
		t.Errorf("the harness said %q", said)
	}
}

func TestATestEndsWhereAProposalNamesNoPodOrAnUnknownOne(t *testing.T) {
	score := func(_ *berth.PodGroup, _ *corev1.Pod, _ *berth.Nodes, proposed []berth.ProposedPlacement) []int64 {
		return make([]int64, len(proposed))
	}
	plugin := &berth.Plugin{Name: "scores", ScorePlacements: score}
	for _, each := range []struct {
		pods     []*corev1.Pod
		proposed map[string]string
		said     string
	}{
		{nil, map[string]string{}, "group g has no pods"},
		{[]*corev1.Pod{berthtest.Pod("p")}, map[string]string{}, "proposal-0 has no pods: name a node for one of the group's at least"},
		{[]*corev1.Pod{berthtest.Pod("p")}, map[string]string{"q": "a"}, "proposal-0: pod q is not in the group"},
		{[]*corev1.Pod{berthtest.Pod("p")}, map[string]string{"p": "z"}, "proposal-0: node z does not exist"},
	} {
		said := saidOf(t, plugin, func(host *berthtest.Host) { host.ScorePlacements("g", each.pods, each.proposed) })
		if said != each.said {
			t.Errorf("the harness said %q, not %q", said, each.said)
		}
	}
}
