package main

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

var (
	blue  = berthtest.Labels{"team": "blue"}
	nodes = []*corev1.Node{
		berthtest.Node("blue", blue),
		berthtest.Node("red", berthtest.Labels{"team": "red"}),
		berthtest.Node("free"),
	}
)

func TestPodsStayOffOtherTeamsNodesAndPreferTheirOwn(t *testing.T) {
	host := berthtest.Run(t, plugin(), nodes...)

	verdict, scores := host.FilterScore(berthtest.Pod("p", blue))

	if want := []string{"blue", "free"}; !slices.Equal(want, verdict.Passing()) {
		t.Errorf("passing %v, want %v", verdict.Passing(), want)
	}
	if want := map[string]int64{"blue": 100, "free": 0}; !maps.Equal(want, scores) {
		t.Errorf("scores %v, want %v", scores, want)
	}
}

func TestTheLabelIsAnArgument(t *testing.T) {
	host := berthtest.RunWith(t, plugin(), map[string]string{"label": "tenant"}, nodes...)

	if passing := host.Filter(berthtest.Pod("p", blue)).Passing(); len(passing) != 3 {
		t.Errorf("passing %v, want all nodes", passing)
	}
}

func TestANodeThatJoinsTheTeamIsWorthAnotherAttempt(t *testing.T) {
	host := berthtest.Run(t, plugin(), nodes...)
	joins := func(team string) berth.Event {
		node := []byte(`{"metadata": {"labels": {"team": "` + team + `"}}}`)
		return berth.Event{Resource: "Node", Action: berth.UpdateNodeLabel, New: node}
	}

	table := host.Hints([]*corev1.Pod{berthtest.Pod("p", blue)}, joins("red"), joins("blue"))

	if table[0][0] || !table[1][0] {
		t.Errorf("worth another attempt: %v", table)
	}
}
