package berth_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

func passing(t *testing.T, plugin *berth.Plugin) *raw {
	t.Helper()
	r := dial(t, plugin)
	r.configure()
	return r
}

func anyNode() *berth.Plugin {
	return &berth.Plugin{Name: "any-node", Filter: func(*corev1.Pod, *corev1.Node) *berth.Reason { return nil }}
}

func TestANewPluginHoldsNothing(t *testing.T) {
	_, held := passing(t, anyNode()).sync()

	if held == nil || held.Epoch != "" || held.Generation != 0 {
		t.Errorf("a new plugin says that it holds %v", held)
	}
}

func TestWhatIsHeldSurvivesTheStream(t *testing.T) {
	r := passing(t, anyNode())
	r.transferred()

	again, held := r.sync()
	answer := again.hear(resume("e", held.Generation))

	if held.Epoch != "e" || held.Generation != 1 || answer.GetAck().GetGeneration() != 1 {
		t.Errorf("held %v, answered %v", held, answer)
	}
}

func TestANominatedPodIsWhereItIsNominatedUntilItIsAssumed(t *testing.T) {
	var seen []string
	plugin := &berth.Plugin{
		Name:             "watches",
		WantsNominations: true,
		PodUpserted: func(placed *berth.PlacedPod) {
			seen = append(seen, fmt.Sprint(placed.NodeName, placed.Stage == berth.Nominated))
		},
		PodRemoved: func(placed *berth.PlacedPod) { seen = append(seen, "-"+placed.NodeName) },
		Filter:     func(*corev1.Pod, *corev1.Node) *berth.Reason { return nil },
	}
	host := berthtest.Run(t, plugin, berthtest.Node("a"), berthtest.Node("b"))
	pod := berthtest.Pod("p")

	host.Cluster.PutPod(pod, "a", berth.Nominated, 0)
	host.Cluster.PutPod(pod, "b", berth.Nominated, 0)
	host.Cluster.PutPod(pod, "b", berth.Assumed, 1)
	host.Filter(pod)

	if want := []string{"atrue", "-a", "btrue", "bfalse"}; !slices.Equal(want, seen) {
		t.Errorf("heard %v, want %v", seen, want)
	}
}

func TestMessagesThatDoNotFitAreRefusedWithTheirReason(t *testing.T) {
	for name, test := range map[string]struct {
		messages []*pb.SyncRequest
		reason   pb.NackReason
	}{
		"an unknown epoch":        {[]*pb.SyncRequest{resume("f", 1)}, pb.NackReason_NACK_REASON_CANNOT_RESUME},
		"a generation never held": {[]*pb.SyncRequest{resume("e", 2)}, pb.NackReason_NACK_REASON_CANNOT_RESUME},
		"a gap":                   {[]*pb.SyncRequest{delta(step(2, 3, 2))}, pb.NackReason_NACK_REASON_GAP},
		"a wrong count":           {[]*pb.SyncRequest{delta(step(1, 2, 3))}, pb.NackReason_NACK_REASON_MISMATCH},
		"an index too high":       {[]*pb.SyncRequest{delta(step(1, 2, 3, nodeAt(3, "c")))}, pb.NackReason_NACK_REASON_MISMATCH},
		"another node's index":    {[]*pb.SyncRequest{delta(step(1, 2, 2, nodeAt(0, "b")))}, pb.NackReason_NACK_REASON_MISMATCH},
		"another node's removal":  {[]*pb.SyncRequest{delta(step(1, 2, 1, nodeGone(0, "b")))}, pb.NackReason_NACK_REASON_MISMATCH},
		"no JSON":                 {[]*pb.SyncRequest{delta(step(1, 2, 2, broken()))}, pb.NackReason_NACK_REASON_BAD_OBJECT},
		"no change":               {[]*pb.SyncRequest{delta(step(1, 2, 2, &pb.Change{}))}, pb.NackReason_NACK_REASON_BAD_OBJECT},
		"a stray chunk":           {[]*pb.SyncRequest{chunk()}, pb.NackReason_NACK_REASON_OUT_OF_ORDER},
		"a stray commit":          {[]*pb.SyncRequest{commit(2, 2)}, pb.NackReason_NACK_REASON_OUT_OF_ORDER},
		"no message":              {[]*pb.SyncRequest{{}}, pb.NackReason_NACK_REASON_OUT_OF_ORDER},
		"an epoch without a name": {[]*pb.SyncRequest{begin("")}, pb.NackReason_NACK_REASON_OUT_OF_ORDER},
		"a commit of nothing":     {[]*pb.SyncRequest{begin("e"), commit(0, 0)}, pb.NackReason_NACK_REASON_OUT_OF_ORDER},
		"a lost chunk":            {[]*pb.SyncRequest{begin("e"), commit(2, 2)}, pb.NackReason_NACK_REASON_MISMATCH},
	} {
		t.Run(name, func(t *testing.T) {
			r := passing(t, anyNode())
			opened := r.transferred()

			nack := opened.hear(test.messages...).GetNack()

			if nack.GetReason() != test.reason || nack.GetMessage() == "" {
				t.Fatalf("got %v, want %v with a text", nack, test.reason)
			}
			if _, reason, _ := r.filter(head(1)); reason != "NOT_SYNCED" {
				t.Errorf("after a Nack the answer was %q, not NOT_SYNCED", reason)
			}
			if ack := opened.hear(begin("e"), chunk(nodeAt(0, "a")), commit(5, 1)).GetAck(); ack.GetGeneration() != 5 {
				t.Errorf("a full transfer did not cure it: %v", ack)
			}
		})
	}
}

func TestStepsBehindWhatIsHeldAreSkipped(t *testing.T) {
	r := passing(t, anyNode())
	opened := r.transferred()
	opened.hear(delta(step(1, 3, 1, nodeGone(0, "a"))))

	answer := opened.hear(delta(step(1, 2, 7, nodeGone(1, "x"))))

	if answer.GetAck().GetGeneration() != 3 {
		t.Errorf("got %v, want an Ack of 3", answer)
	}
}

func TestANewerStreamEndsTheOlder(t *testing.T) {
	r := passing(t, anyNode())
	older := r.transferred()

	r.sync()

	if _, err := older.Recv(); err == nil {
		t.Error("the older stream goes on")
	}
}

func TestUntilTheCommitTheOldStateAnswers(t *testing.T) {
	r := passing(t, anyNode())
	opened := r.transferred()
	opened.say(begin("e"), chunk(nodeAt(0, "c")))

	response, _, err := r.filter(head(1))

	if err != nil || response.Generation != 1 {
		t.Errorf("got %v, %v", response, err)
	}
}

func TestHooksFollowTheState(t *testing.T) {
	var heard []string
	plugin := anyNode()
	plugin.WantsPods = true
	plugin.StateReset = func(changed bool) {
		if changed {
			heard = append(heard, "new epoch")
		}
		heard = append(heard, "reset")
	}
	plugin.StateSettled = func() { heard = append(heard, "settled") }
	plugin.NodeUpserted = func(_ int, node *corev1.Node) { heard = append(heard, "+"+node.Name) }
	plugin.NodeRemoved = func(index, last int) { heard = append(heard, "-") }
	r := passing(t, plugin)
	opened := r.transferred()
	opened.hear(delta(step(1, 2, 1, nodeGone(0, "a"))))
	opened.hear(begin("e"), commit(3, 0))

	want := []string{"new epoch", "reset", "+a", "+b", "settled", "-", "reset", "settled"}
	if len(heard) != len(want) {
		t.Fatalf("heard %v, want %v", heard, want)
	}
	for i := range want {
		if heard[i] != want[i] {
			t.Fatalf("heard %v, want %v", heard, want)
		}
	}
}

func TestAHookThatFailsAsksForTheStateAnew(t *testing.T) {
	plugin := anyNode()
	plugin.NodeRemoved = func(int, int) { panic("columns are gone") }
	r := passing(t, plugin)

	nack := r.transferred().hear(delta(step(1, 2, 1, nodeGone(0, "a")))).GetNack()

	if nack.GetReason() != pb.NackReason_NACK_REASON_BAD_OBJECT {
		t.Errorf("got %v", nack)
	}
}

func TestObjectsReachTheirHooks(t *testing.T) {
	seen := map[berth.ObjectKey]string{}
	plugin := anyNode()
	plugin.Resources = []berth.WatchedResource{{Group: "g", Version: "v1", Resource: "things"}}
	plugin.ObjectUpserted = func(key berth.ObjectKey, object json.RawMessage) error { seen[key] = string(object); return nil }
	plugin.ObjectRemoved = func(key berth.ObjectKey) { delete(seen, key) }
	r := passing(t, plugin)
	opened := r.transferred()
	key := func(name string) *pb.ObjectKey {
		return &pb.ObjectKey{Group: "g", Version: "v1", Resource: "things", Name: name}
	}
	put := func(name string) *pb.Change {
		upsert := &pb.ObjectUpsert{Key: key(name), Object: []byte(`{}`)}
		return &pb.Change{Change: &pb.Change_ObjectUpsert{ObjectUpsert: upsert}}
	}
	removal := &pb.Change{Change: &pb.Change_ObjectRemove{ObjectRemove: &pb.ObjectRemove{Key: key("x")}}}

	opened.hear(delta(step(1, 2, 2, put("x"), put("y"), removal)))

	want := berth.ObjectKey{Group: "g", Version: "v1", Resource: "things", Name: "y"}
	if len(seen) != 1 || seen[want] != "{}" {
		t.Errorf("seen %v", seen)
	}
}

func broken() *pb.Change {
	upsert := &pb.NodeUpsert{Index: 0, Name: "a", Object: []byte("{")}
	return &pb.Change{Change: &pb.Change_NodeUpsert{NodeUpsert: upsert}}
}
