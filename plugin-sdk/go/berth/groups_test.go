package berth_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
)

func TestAGroupIsJudgedByEachNumberOfPods(t *testing.T) {
	host := onThree(t, &berth.Plugin{
		PlacementFeasible: func(group *berth.PodGroup, _ *corev1.Pod, progress berth.PlacementProgress) *berth.Status {
			switch needed := len(group.Pods); {
			case progress.Scheduled >= needed:
				return nil
			case progress.Scheduled+progress.Remaining < needed:
				return &berth.Status{Code: berth.Unschedulable, Reasons: []string{"too few"}}
			}
			return &berth.Status{Code: berth.Wait, Reasons: []string{"not yet"}}
		},
	})

	var codes []berth.Code
	for _, each := range host.PlacementFeasible("g", pair,
		berth.PlacementProgress{Remaining: 2}, berth.PlacementProgress{Scheduled: 2}, berth.PlacementProgress{Scheduled: 1},
	) {
		codes = append(codes, each.Code)
	}

	if want := []berth.Code{berth.Wait, berth.Success, berth.Unschedulable}; !reflect.DeepEqual(codes, want) {
		t.Errorf("got %v, want %v", codes, want)
	}
}

func TestEvictionsAreProposedForAGroup(t *testing.T) {
	for name, test := range map[string]struct {
		proposals []berth.GroupPreemption
		status    *berth.Status
		want      [][]string
		says      string
	}{
		"two":       {proposals: []berth.GroupPreemption{{VictimUIDs: []string{"a"}}, {VictimUIDs: []string{"b", "c"}}}, want: [][]string{{"a"}, {"b", "c"}}},
		"none":      {},
		"why":       {status: &berth.Status{Code: berth.Unschedulable, Reasons: []string{"no pod"}}, says: "no pod"},
		"no victim": {proposals: []berth.GroupPreemption{{}}, says: "a proposal evicts no pod"},
	} {
		t.Run(name, func(t *testing.T) {
			host := onThree(t, &berth.Plugin{
				PodGroupPostFilter: func(*berth.PodGroup, *corev1.Pod, *berth.Nodes, berth.Verdicts) ([]berth.GroupPreemption, *berth.Status) {
					return test.proposals, test.status
				},
			})

			proposals, status := host.PodGroupPostFilter("g", pair)

			if said := strings.Join(status.Reasons, ""); !reflect.DeepEqual(proposals, test.want) || !strings.HasSuffix(said, test.says) {
				t.Errorf("got %v, %q, want %v, %q", proposals, said, test.want, test.says)
			}
		})
	}
}
