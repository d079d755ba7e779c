package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

// kit is the plugin in front of a host that says the time.
type kit struct {
	*berthtest.Host
	t      *testing.T
	plugin *coscheduling
	heard  <-chan berthtest.Said
	clock  time.Time
}

func gathered(t *testing.T, arguments any) *kit {
	k := &kit{t: t, plugin: newCoscheduling(nil), clock: time.Unix(1000, 0)}
	k.Host = berthtest.RunWith(t, k.plugin.plugin, arguments, berthtest.Node("n"))
	k.SetTime(k.clock)
	k.heard = k.Listen()
	return k
}

// passes lets so much time pass, and what waited for it run.
func (k *kit) passes(wait time.Duration) {
	k.clock = k.clock.Add(wait)
	k.SetTime(k.clock)
}

// says expects the next word of the plugin.
func (k *kit) says(what string, pods ...*corev1.Pod) {
	k.t.Helper()
	uids := []string{}
	for _, pod := range pods {
		uids = append(uids, string(pod.UID))
	}
	slices.Sort(uids)
	select {
	case said := <-k.heard:
		if said.What != what || !slices.Equal(said.UIDs, uids) {
			k.t.Fatalf("the plugin said %v, want %s of %v", said, what, uids)
		}
	case <-time.After(time.Minute):
		k.t.Fatalf("the plugin was silent, want %s of %v", what, uids)
	}
}

// silent expects that everything the plugin said was heard.
func (k *kit) silent() {
	k.t.Helper()
	k.plugin.requeue.AllRejected("the end")
	if said := <-k.heard; said.What != "requeue_all" {
		k.t.Fatalf("the plugin said %v", said)
	}
}

// group brings a PodGroup that is so many seconds old.
func (k *kit) group(name string, minimum int32, age int) {
	k.t.Helper()
	group := PodGroup{Spec: PodGroupSpec{MinMember: minimum}}
	group.Metadata.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000-age), 0))
	k.Cluster.PutObject(groupObject(name), group)
	k.Update()
}

// pods brings so many pods of a group.
func (k *kit) pods(group string, count int) []*corev1.Pod {
	k.t.Helper()
	made := []*corev1.Pod{}
	for i := range count {
		pod := berthtest.Pod(fmt.Sprintf("%s-%d", group, i), berthtest.Labels{groupLabel: group})
		k.Cluster.PutObject(podObject(pod), pod)
		made = append(made, pod)
	}
	k.Update()
	return made
}

// waits reserves and asks Permit, and expects the pod to wait.
func (k *kit) waits(pod *corev1.Pod) time.Duration {
	k.t.Helper()
	k.Reserve(pod, "n")
	wait, status := k.Permit(pod, "n")
	if wait == 0 {
		k.t.Fatalf("%s does not wait: %v", pod.Name, status)
	}
	return wait
}

// goesOn reserves and asks Permit, and expects the pod to go on.
func (k *kit) goesOn(pod *corev1.Pod) {
	k.t.Helper()
	k.Reserve(pod, "n")
	if wait, status := k.Permit(pod, "n"); wait != 0 || status.Code != berth.Success {
		k.t.Fatalf("%s waits for %v: %v", pod.Name, wait, status)
	}
}

// findsNoNode says that no node was left for the pod.
func (k *kit) findsNoNode(pod *corev1.Pod) {
	k.t.Helper()
	if _, status := k.PostFilter(pod, *berth.Reject("no room")); status.Code != berth.Unschedulable {
		k.t.Fatalf("PostFilter says %v", status)
	}
}

// gate expects that the pod is let in, or kept out with such a reason.
func (k *kit) gate(pod *corev1.Pod, reason string) {
	k.t.Helper()
	status := k.PreEnqueue(pod)
	passed := status.Code == berth.Success
	if passed != (reason == "") || (!passed && !strings.Contains(status.Reasons[0], reason)) {
		k.t.Fatalf("the gate says %v, want %q", status, reason)
	}
}

func groupObject(name string) berth.ObjectKey {
	return berth.ObjectKey{Group: apiGroup, Version: apiVersion, Resource: "podgroups", Namespace: "default", Name: name}
}

func podObject(pod *corev1.Pod) berth.ObjectKey {
	return berth.ObjectKey{Version: "v1", Resource: "pods", Namespace: pod.Namespace, Name: pod.Name}
}

func TestPodsWithoutAGroupAreNoneOfItsBusiness(t *testing.T) {
	k := gathered(t, nil)

	k.gate(berthtest.Pod("p"), "")
	k.goesOn(berthtest.Pod("p"))
	k.silent()
}

func TestPodsWaitForTheirGroupToBeThere(t *testing.T) {
	k := gathered(t, nil)
	pods := k.pods("a", 2)
	k.gate(pods[0], "pod group default/a was not found")

	k.group("a", 2, 0)

	k.says("requeue", pods...)
	k.gate(pods[0], "")
}

func TestPodsStayOutOfTheQueueUntilAQuorumExists(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 3, 0)
	pods := k.pods("a", 2)
	k.gate(pods[0], "has 2 of the 3 pods it needs")
	third := berthtest.Pod("third", berthtest.Labels{groupLabel: "a"})

	k.gate(third, "")

	k.says("requeue", append(pods, third)...)
	k.gate(pods[0], "")
}

func TestAPodThatIsDeletedCountsNoLonger(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.says("requeue", pods...)

	k.Cluster.RemoveObject(podObject(pods[1]))
	k.Update()

	k.gate(pods[0], "has 1 of the 2 pods it needs")
}

func TestTheLastOfTheQuorumLetsAllGoOn(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 3, 0)
	pods := k.pods("a", 3)
	k.says("requeue", pods...)
	k.waits(pods[0])
	k.says("requeue", pods[1], pods[2])
	k.waits(pods[1])

	k.goesOn(pods[2])

	k.says("allow", pods...)
	k.silent()
}

func TestPodsAreLetGoUntilTheyAreSeenToGo(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.says("requeue", pods...)
	k.waits(pods[0])
	k.says("requeue", pods[1])
	k.goesOn(pods[1])
	k.says("allow", pods...)
	k.PostBind(pods[1], "n")

	k.passes(sayAgain)
	k.says("allow", pods[0])
	k.PostBind(pods[0], "n")
	k.passes(sayAgain)

	k.silent()
}

func TestPlacedPodsCountForTheQuorum(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.says("requeue", pods...)
	placed := pods[0].DeepCopy()
	placed.Spec.NodeName = "n"
	k.Cluster.PutObject(podObject(placed), placed)
	k.Update()

	k.goesOn(pods[1])
}

func TestTheGroupSaysHowLongItsPodsWait(t *testing.T) {
	seconds := int32(7)
	for name, test := range map[string]struct {
		seconds *int32
		want    time.Duration
	}{"its own": {&seconds, 7 * time.Second}, "the profile's": {nil, 9 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			k := gathered(t, map[string]int{"permitWaitingTimeSeconds": 9})
			spec := PodGroupSpec{MinMember: 2, ScheduleTimeoutSeconds: test.seconds}
			k.Cluster.PutObject(groupObject("a"), PodGroup{Spec: spec})
			pods := k.pods("a", 2)

			if wait := k.waits(pods[0]); wait != test.want {
				t.Errorf("waits for %v, want %v", wait, test.want)
			}
		})
	}
}

func TestOneRefusalEndsTheWaitingOfAll(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 3, 0)
	pods := k.pods("a", 3)
	k.says("requeue", pods...)
	k.waits(pods[0])
	k.says("requeue", pods[1], pods[2])
	k.waits(pods[1])

	k.Unreserve(pods[0], "n")

	k.says("reject", pods...)
	k.gate(pods[2], "gives its places up")
	k.Unreserve(pods[1], "n")
	k.gate(pods[2], "backs off after a failure")
	k.silent()
}

func TestAnUnreserveOfAnOldAttemptChangesNothing(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.says("requeue", pods...)
	k.NextAttempt(pods[0])
	k.waits(pods[0])
	k.says("requeue", pods[1])
	old := berthtest.Connect(t, k.Address)
	old.Unreserve(pods[0], "n")

	k.goesOn(pods[1])
}

func TestAReservationThatIsRepeatedCountsOnce(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.Reserve(pods[0], "n")

	k.waits(pods[0])
}

func TestAGroupThatFailedBacksOff(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.says("requeue", pods...)
	k.waits(pods[0])
	k.says("requeue", pods[1])
	k.Unreserve(pods[0], "n")
	k.gate(pods[0], "backs off after a failure")

	k.passes(time.Second)

	k.says("requeue", pods...)
	k.gate(pods[0], "")
}

func TestBackOffsDoubleUpToTheLimit(t *testing.T) {
	g, waits := newGroup(groupKey{}), []time.Duration{}

	for range 5 {
		waits = append(waits, g.fails(time.Time{}, 10*time.Second)/time.Second)
	}

	if want := []time.Duration{1, 2, 4, 8, 10}; !slices.Equal(want, waits) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}

func TestAGroupThatStillGivesUpIsTriedAgainAfterwards(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 3, 0)
	pods := k.pods("a", 3)
	k.says("requeue", pods...)
	k.waits(pods[0])
	k.says("requeue", pods[1], pods[2])
	k.waits(pods[1])
	k.Unreserve(pods[0], "n")
	k.says("reject", pods...)

	k.passes(time.Second)
	k.says("reject", pods...)
	k.Unreserve(pods[1], "n")
	k.passes(sayAgain)

	k.says("requeue", pods...)
	k.gate(pods[0], "")
}

func TestOfTwoGroupsThatBlockEachOtherTheOlderGoesOn(t *testing.T) {
	for name, stuck := range map[string]int{"the older finds no node": 0, "the younger finds no node": 1} {
		t.Run(name, func(t *testing.T) {
			k := gathered(t, nil)
			k.group("old", 3, 60)
			k.group("new", 3, 30)
			older, newer := k.pods("old", 3), k.pods("new", 3)
			k.says("requeue", older...)
			k.says("requeue", newer...)
			k.waits(older[0])
			k.says("requeue", older[1:]...)
			k.waits(newer[0])
			k.says("requeue", newer[1:]...)
			k.waits(older[1])
			k.waits(newer[1])

			k.findsNoNode([]*corev1.Pod{older[2], newer[2]}[stuck])

			k.says("reject", newer...)
			k.Unreserve(newer[0], "n")
			k.Unreserve(newer[1], "n")
			k.gate(newer[2], "makes room for pod group default/old")
			k.goesOn(older[2])
			k.says("allow", older...)
			k.says("requeue", newer...)
			k.gate(newer[2], "")
			k.silent()
		})
	}
}

func TestPriorityGoesBeforeAge(t *testing.T) {
	older, newer := newGroup(groupKey{"d", "old"}), newGroup(groupKey{"d", "new"})
	older.resource, newer.resource = &PodGroup{}, &PodGroup{}
	newer.resource.Metadata.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
	newer.members["u"] = &member{priority: 5}

	if older.before(newer) || !newer.before(older) {
		t.Error("the older group goes before the one of higher priority")
	}
}

func TestAGroupAloneThatFindsNoNodeGivesUp(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.says("requeue", pods...)
	k.waits(pods[0])
	k.says("requeue", pods[1])

	k.findsNoNode(pods[1])

	k.says("reject", pods...)
}

func TestInShadowNoGroupGivesUp(t *testing.T) {
	k := gathered(t, nil)
	k.ConfigureShadow(map[string]any{})
	k.group("g", 2, 0)
	pods := k.pods("g", 2)
	k.Reserve(pods[0], "n")
	k.findsNoNode(pods[1])
	k.gate(pods[1], "")
}

func TestAGroupWaitsNoLongerForOneThatIsGone(t *testing.T) {
	k := gathered(t, nil)
	k.group("old", 2, 60)
	k.group("new", 2, 30)
	older, newer := k.pods("old", 2), k.pods("new", 2)
	k.says("requeue", older...)
	k.says("requeue", newer...)
	k.waits(older[0])
	k.says("requeue", older[1])
	k.findsNoNode(newer[0])
	k.gate(newer[0], "makes room for pod group default/old")

	k.Cluster.RemoveObject(groupObject("old"))
	k.Update()

	k.says("reject", older...)
	k.Unreserve(older[0], "n")
	k.says("requeue", newer...)
}

func TestGroupsThatMadeRoomTryAgainInTheirOrder(t *testing.T) {
	k := gathered(t, nil)
	k.group("old", 2, 60)
	older := k.pods("old", 2)
	k.says("requeue", older...)
	k.waits(older[0])
	k.says("requeue", older[1])
	yielding := [][]*corev1.Pod{}
	for i, name := range []string{"f", "e", "d", "c", "b", "a"} {
		k.group(name, 2, 30-i)
		pods := k.pods(name, 2)
		k.says("requeue", pods...)
		k.findsNoNode(pods[0])
		yielding = append(yielding, pods)
	}

	k.goesOn(older[1])

	k.says("allow", older...)
	for _, pods := range yielding {
		k.says("requeue", pods...)
	}
	k.silent()
}

func TestANewSchedulerFindsNothingReserved(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.says("requeue", pods...)
	k.waits(pods[0])
	k.says("requeue", pods[1])
	k.Epoch = "another"
	k.Sync()

	k.waits(pods[1])
}

func TestAGroupThatAsksForTheImpossibleWaitsUntilItIsMended(t *testing.T) {
	k := gathered(t, nil)
	k.group("a", -1, 0)
	pods := k.pods("a", 1)
	k.gate(pods[0], "can't be used: spec.minMember: -1 is negative")

	k.group("a", 1, 0)

	k.says("requeue", pods...)
}
