package berth_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
)

func preFilter(status *berth.Status) func(context.Context, *corev1.Pod) *berth.Status {
	return func(context.Context, *corev1.Pod) *berth.Status { return status }
}

// postFilter nominates the last node, with the reason of the first as a victim.
func postFilter(_ context.Context, _ *corev1.Pod, nodes *berth.Nodes, verdicts berth.Verdicts) (*berth.Nomination, *berth.Status) {
	reason := verdicts.Reasons[verdicts.Codes[0]-1]
	return &berth.Nomination{NodeName: nodes.At(nodes.Len() - 1).Name, VictimUIDs: []string{reason.Text}}, nil
}
