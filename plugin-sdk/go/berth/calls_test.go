package berth_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

func TestACallCarriesTheStepsItNeeds(t *testing.T) {
	r := passing(t, anyNode())
	r.transferred()

	response, _, err := r.filter(head(3, step(0, 1, 9), step(1, 2, 3, nodeAt(2, "c")), step(2, 3, 2, nodeGone(0, "a"))))

	if err != nil || response.Generation != 3 {
		t.Errorf("got %v, %v", response, err)
	}
}

func TestACallWaitsForTheStream(t *testing.T) {
	r := passing(t, anyNode())
	opened := r.transferred()
	answered := make(chan int64)
	go func() {
		response, _, _ := r.filter(head(2))
		answered <- response.GetGeneration()
	}()

	opened.hear(delta(step(1, 2, 2)))

	if generation := <-answered; generation != 2 {
		t.Errorf("answered for generation %d, want 2", generation)
	}
}

func TestACallWaitsNoLongerThanItsDeadline(t *testing.T) {
	r := passing(t, anyNode())
	r.transferred()
	ctx, cancel := context.WithTimeout(r.ctx, 50*time.Millisecond)
	defer cancel()

	_, err := r.scheduling.Filter(ctx, &pb.FilterRequest{Call: head(2)})

	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want DEADLINE_EXCEEDED", err)
	}
	if response, _, err := r.filter(head(1)); err != nil || response.Generation != 1 {
		t.Errorf("the next call got %v, %v", response, err)
	}
}

func TestCallsThatCannotBeAnsweredSayWhatIsMissing(t *testing.T) {
	other := func(change func(*pb.Call)) *pb.Call {
		call := head(1)
		change(call)
		return call
	}
	for name, test := range map[string]struct {
		call   *pb.Call
		reason string
	}{
		"an unknown profile": {other(func(c *pb.Call) { c.Profile = "x" }), "NOT_CONFIGURED"},
		"an unknown epoch":   {other(func(c *pb.Call) { c.Epoch = "x" }), "NOT_SYNCED"},
		"a step that can't be taken": {
			other(func(c *pb.Call) { c.Generation, c.Deltas = 2, []*pb.Delta{step(1, 2, 7)} }), "NOT_SYNCED",
		},
		"a pod never sent":         {other(func(c *pb.Call) { c.Pod.Object = nil }), "POD_UNKNOWN"},
		"indices that have ended":  {other(func(c *pb.Call) { c.Deltas = []*pb.Delta{step(1, 2, 1, nodeGone(0, "a"))} }), "GENERATION_GONE"},
		"another attempt's object": {other(func(c *pb.Call) { c.Pod.Object, c.Pod.Uid, c.Pod.Attempt = nil, "known", 2 }), "POD_UNKNOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			r := passing(t, anyNode())
			r.transferred()
			known := head(1)
			known.Pod.Uid = "known"
			_, _, err := r.filter(known)
			must(t, err)

			_, reason, err := r.filter(test.call)

			if reason != test.reason || status.Code(err) != codes.FailedPrecondition {
				t.Errorf("got %q, %v, want %q", reason, err, test.reason)
			}
		})
	}
}

func TestAPodIsRememberedWithinItsAttempt(t *testing.T) {
	r := passing(t, anyNode())
	r.transferred()
	_, _, err := r.filter(head(1))
	must(t, err)
	again := head(1)
	again.Pod.Object = nil

	if _, reason, err := r.filter(again); err != nil {
		t.Errorf("got %q, %v", reason, err)
	}
}

func TestAnOldGenerationIsServedWhileIndicesStand(t *testing.T) {
	r := passing(t, anyNode())
	opened := r.transferred()
	opened.hear(delta(step(1, 2, 2, nodeAt(0, "a"))))

	response, _, err := r.filter(head(1))

	if err != nil || response.Generation != 2 {
		t.Errorf("got %v, %v, want an answer for 2", response, err)
	}
}

func TestBadRequestsAreTheHostsFault(t *testing.T) {
	bad := head(1)
	bad.Pod.Object = []byte("{")
	for name, request := range map[string]*pb.FilterRequest{
		"no call":            {},
		"a bitmap too short": {Call: head(1), Candidates: &pb.Candidates{}},
		"a bitmap too long":  {Call: head(1), Candidates: &pb.Candidates{Bitmap: []byte{1, 0}}},
		"a pod that is none": {Call: bad},
	} {
		t.Run(name, func(t *testing.T) {
			r := passing(t, anyNode())
			r.transferred()

			_, err := r.scheduling.Filter(r.ctx, request)

			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("got %v, want INVALID_ARGUMENT", err)
			}
		})
	}
}

func TestAConversationAnswersInTheOrderOfTheStream(t *testing.T) {
	var order []string
	plugin := anyNode()
	plugin.PreEnqueue = func(ctx context.Context, _ *corev1.Pod) *berth.Status {
		order = append(order, berth.CurrentCall(ctx).Key.UID)
		return nil
	}
	r := passing(t, plugin)
	talk, err := r.scheduling.Converse(r.ctx)
	must(t, err)
	var want []string
	for i := range uint64(50) {
		call := head(1)
		call.Pod.Uid = strings.Repeat("u", int(i)+1)
		want = append(want, call.Pod.Uid)
		asked := &pb.ConverseRequest_PreEnqueue{PreEnqueue: &pb.PreEnqueueRequest{Call: call}}
		must(t, talk.Send(&pb.ConverseRequest{Id: i, Call: asked}))
	}

	heard := map[uint64]bool{}
	for range want {
		answer, err := talk.Recv()
		must(t, err)
		heard[answer.Id] = answer.GetPreEnqueue().GetStatus().GetCode() == pb.Code_CODE_SUCCESS
	}

	if len(heard) != len(want) || !slices.Equal(want, order) {
		t.Errorf("%d answers, order %v", len(heard), order)
	}
}

func TestAConversationCarriesErrorsAndDeadlines(t *testing.T) {
	r := passing(t, anyNode())
	r.transferred()
	talk, err := r.scheduling.Converse(r.ctx)
	must(t, err)
	ask := func(id uint64, generation int64, timeout time.Duration) *pb.ConverseRequest {
		asked := &pb.ConverseRequest_Filter{Filter: &pb.FilterRequest{Call: head(generation)}}
		return &pb.ConverseRequest{Id: id, Call: asked, Timeout: durationpb.New(timeout)}
	}
	unsynced, synced := ask(1, 2, time.Millisecond), ask(2, 1, time.Minute)
	unknown := ask(3, 1, time.Minute)
	unknown.GetFilter().Call.Profile = "x"
	for _, request := range []*pb.ConverseRequest{unsynced, synced, unknown, {Id: 4}} {
		must(t, talk.Send(request))
	}

	got := map[uint64]codes.Code{}
	for range 4 {
		answer, err := talk.Recv()
		must(t, err)
		got[answer.Id] = codes.Code(answer.GetError().GetCode())
	}

	want := []codes.Code{1: codes.DeadlineExceeded, 2: codes.OK, 3: codes.FailedPrecondition, 4: codes.Unimplemented}
	for id, code := range want {
		if id > 0 && got[uint64(id)] != code {
			t.Errorf("call %d ended with %v, want %v", id, got[uint64(id)], code)
		}
	}
}

func TestOthersGoOnWhileAFunctionAwaits(t *testing.T) {
	release := make(chan struct{})
	plugin := anyNode()
	plugin.Permit = func(ctx context.Context, _ *corev1.Pod, _ *corev1.Node) (time.Duration, *berth.Status) {
		err := berth.Await(ctx, func(context.Context) error {
			<-release
			return nil
		})
		if err != nil {
			return 0, berth.Errorf("%v", err)
		}
		return time.Minute, nil
	}
	host := berthtest.Run(t, plugin, berthtest.Node("n"))
	waits := make(chan time.Duration)
	go func() {
		wait, _ := host.Permit(bluePod, "n")
		waits <- wait
	}()

	host.Filter(berthtest.Pod("other"))
	close(release)

	if wait := <-waits; wait != time.Minute {
		t.Errorf("the pod waits for %v", wait)
	}
}

func TestReservationsBelongToAnAttempt(t *testing.T) {
	held := map[string]uint32{}
	plugin := anyNode()
	plugin.Reserve = func(ctx context.Context, _ *corev1.Pod, node *corev1.Node) (*berth.MetadataPatch, *berth.Status) {
		key := berth.CurrentCall(ctx).Key
		held[key.UID] = key.Attempt
		return berth.Annotate("on", node.Name), nil
	}
	plugin.Unreserve = func(_ context.Context, key berth.PodKey, _ string) { delete(held, key.UID) }
	host := berthtest.Run(t, plugin, berthtest.Node("n"))

	host.Reserve(bluePod, "n")
	host.Unreserve(bluePod, "n")
	host.Reserve(bluePod, "n")

	if held[string(bluePod.UID)] != 2 {
		t.Errorf("held %v, want attempt 2", held)
	}
}

func TestANodeThatIsGoneRefusesThePod(t *testing.T) {
	host := berthtest.Run(t, anyNode(), berthtest.Node("n"))
	host.Cluster.RemoveNode("n")

	if status := host.Reserve(bluePod, "n"); status.Code != berth.Unschedulable {
		t.Errorf("got %v", status)
	}
}

func TestHintsAreOneTable(t *testing.T) {
	plugin := anyNode()
	plugin.QueueingHint = func(pod *corev1.Pod, event berth.Event) bool {
		_, after, err := event.Nodes()
		return err == nil && after != nil && after.Labels["team"] == pod.Labels["team"]
	}
	host := berthtest.Run(t, plugin)
	red := berthtest.Pod("q", berthtest.Labels{"team": "red"})
	event := berth.Event{Resource: "Node", Action: berth.Add, New: []byte(`{"metadata": {"labels": {"team": "red"}}}`)}

	table := host.Hints([]*corev1.Pod{bluePod, red}, event, berth.Event{Resource: "Node", Action: berth.Delete})

	if want := [][]bool{{false, true}, {false, false}}; !slices.EqualFunc(want, table, slices.Equal) {
		t.Errorf("got %v, want %v", table, want)
	}
}

func TestPodsNotAtHandAreNamedAndQueued(t *testing.T) {
	plugin := anyNode()
	plugin.QueueingHint = func(*corev1.Pod, berth.Event) bool { return false }
	r := passing(t, plugin)
	known := head(1).Pod
	request := &pb.QueueingHintsRequest{
		Profile: berthtest.Profile,
		Events:  []*pb.ClusterEvent{{Resource: "Node", Action: pb.ActionType_ACTION_TYPE_ADD}},
		Pods:    []*pb.PodRef{known, {Uid: "stranger"}},
	}

	response, err := r.queueing.QueueingHints(r.ctx, request)
	must(t, err)

	if response.UnknownPods[0] != 2 || response.Hints[0].GetPods()[0] != 2 {
		t.Errorf("got %v", response)
	}
}

func TestTheSchedulerHearsWhatThePluginSays(t *testing.T) {
	requeue := &berth.Requeue{}
	plugin := anyNode()
	plugin.Requeue = requeue
	host := berthtest.Run(t, plugin)
	heard := host.Listen()

	requeue.Pods("quota", "u1")
	requeue.AllRejected("all")
	requeue.Allow("go", "u2", "u3")
	requeue.Reject("stop", "u4")

	want := []string{"requeue", "requeue_all", "allow", "reject"}
	for _, what := range want {
		if said := <-heard; said.What != what {
			t.Errorf("heard %v, want %s", said, what)
		}
	}
}
