package berth_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

func TestAnswersFollowTheTimeThatIsSaid(t *testing.T) {
	noon := time.Unix(1_800_000_000, 0)
	clock := &berth.Clock{}
	host := berthtest.Run(t, &berth.Plugin{
		Name:    "doors",
		Clock:   clock,
		Requeue: &berth.Requeue{},
		Filter: func(*corev1.Pod, *corev1.Node) *berth.Reason {
			if clock.Now().Before(noon) {
				clock.After(time.Minute, func() {})
				return berth.Reject("node(s) are closed before noon")
			}
			return nil
		},
	}, berthtest.Node("n"))
	host.SetTime(noon.Add(-time.Hour))

	if passing := host.Filter(berthtest.Pod("p")).Passing(); len(passing) != 0 {
		t.Errorf("before noon %v pass", passing)
	}
	if wake := host.SetTime(noon.Add(-time.Hour)); !wake.Equal(noon.Add(-59 * time.Minute)) {
		t.Errorf("the timer is due at %v", wake)
	}
	host.SetTime(noon)
	if passing := host.Filter(berthtest.Pod("p")).Passing(); len(passing) != 1 {
		t.Errorf("at noon %v pass", passing)
	}
}
