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
