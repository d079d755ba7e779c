package berth_test

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

func TestPodsHaveTheKeysThatThePluginGivesThem(t *testing.T) {
	var left []string
	resets := 0
	host := berthtest.Run(t, &berth.Plugin{
		Name: "order",
		SortKey: func(pod *corev1.Pod) []int64 {
			switch pod.Name {
			case "broken":
				panic("no key")
			case "long":
				return make([]int64, 9)
			}
			return []int64{-5, int64(len(pod.Name))}
		},
		PodsLeft:   func(uids []string) { left = uids },
		QueueReset: func(string) { resets++ },
	})
	pods := []*corev1.Pod{berthtest.Pod("p"), berthtest.Pod("broken"), berthtest.Pod("long")}

	keys := host.SortKeys(pods, true, "u")

	if !slices.Equal(keys[0], []int64{-5, 1}) || len(keys[1])+len(keys[2]) != 0 {
		t.Errorf("got keys %v", keys)
	}
	if !slices.Equal(left, []string{"u"}) || resets != 1 {
		t.Errorf("left %v, %d resets", left, resets)
	}
}

func TestOtherKeysComeInMessagesThatTheSchedulerReads(t *testing.T) {
	plugin := &berth.Plugin{
		Name: "order", Requeue: &berth.Requeue{}, SortKey: func(*corev1.Pod) []int64 { return nil },
	}
	host := berthtest.Run(t, plugin)
	heard := host.Listen()
	keys := map[string][]int64{}
	for i := range 5000 {
		keys[strconv.Itoa(i)] = []int64{int64(i)}
	}

	wrong := plugin.Requeue.SortKeys("a test", map[string][]int64{"u": make([]int64, 9)})
	must(t, plugin.Requeue.SortKeys("a test", keys))

	if wrong == nil {
		t.Error("a key of 9 parts is said")
	}
	if first, second := <-heard, <-heard; len(first.UIDs) != 4096 || len(second.UIDs) != 904 {
		t.Errorf("got messages of %d and %d", len(first.UIDs), len(second.UIDs))
	}
}

func TestWhatHearsOfTheQueueNeedsAKey(t *testing.T) {
	plugin := &berth.Plugin{Name: "order", QueueReset: func(string) {}}

	if plugin.Validate() == nil {
		t.Error("QueueReset without SortKey is accepted")
	}
}
