package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
)

// demands brings a PodGroup with these minimums; roles are as in the annotation.
func (k *kit) demands(name string, pods int32, roles string, resources corev1.ResourceList) {
	k.t.Helper()
	group := PodGroup{Spec: PodGroupSpec{MinMember: pods, MinResources: resources}}
	group.Metadata.Annotations = map[string]string{minMembers: roles}
	k.Cluster.PutObject(groupObject(name), group)
	k.Update()
}

// role brings pods of that role in the group, each with a core and a half.
func (k *kit) role(group, role string, names ...string) []*corev1.Pod {
	k.t.Helper()
	made := []*corev1.Pod{}
	for _, name := range names {
		pod := berthtest.Pod(name, berthtest.Labels{groupLabel: group, roleLabel: role})
		requests := corev1.ResourceList{"cpu": resource.MustParse("1500m")}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}
		k.Cluster.PutObject(podObject(pod), pod)
		made = append(made, pod)
	}
	k.Update()
	return made
}

// inTurn expects that the pod is let into a cycle, or turned down with such a reason.
func (k *kit) inTurn(pod *corev1.Pod, reason string) {
	k.t.Helper()
	verdict := k.Filter(pod)
	passed := verdict.Status.Code == berth.Success || verdict.Status.Code == berth.Skip
	if passed != (reason == "") || (!passed && !strings.Contains(strings.Join(verdict.Status.Reasons, ""), reason)) {
		k.t.Fatalf("the cycle says %v, want %q", verdict.Status, reason)
	}
}

func TestAGroupNeedsPodsOfEachRole(t *testing.T) {
	k := gathered(t, nil)
	k.demands("a", 2, "ps=1,worker=1", nil)
	workers := k.role("a", "worker", "w-0", "w-1")
	k.gate(workers[0], "has 0 of the 1 pods of role ps it needs")

	servers := k.role("a", "ps", "ps-0")

	k.gate(workers[0], "")
	k.gate(servers[0], "")
}

func TestMoreOfOneRoleDoesNotCompleteTheOther(t *testing.T) {
	k := gathered(t, nil)
	k.demands("a", 3, "t1=2,t2=2", nil)
	first, second := k.role("a", "t1", "t1-0", "t1-1"), k.role("a", "t2", "t2-0", "t2-1")

	k.waits(first[0])
	k.waits(first[1])
	k.waits(second[0])
	k.goesOn(second[1])
}

func TestPlacesAreKeptForTheRolesThatLackPods(t *testing.T) {
	k := gathered(t, nil)
	k.demands("a", 5, "t1=2,t2=2", nil)
	first := k.role("a", "t1", "t1-0", "t1-1", "t1-2", "t1-3")
	second := k.role("a", "t2", "t2-0", "t2-1")
	for _, each := range first[:3] {
		k.inTurn(each, "")
		k.waits(each)
	}

	k.inTurn(first[3], "has its places for pods of role t2")
	k.inTurn(second[0], "")
	k.waits(second[0])
	k.goesOn(second[1])
	k.inTurn(first[3], "")
}

func TestPodsThatWereHeldBackComeInWithACompleteGroup(t *testing.T) {
	k := gathered(t, nil)
	k.demands("a", 2, "t1=1,t2=1", nil)
	first, second := k.role("a", "t1", "t1-0", "t1-1"), k.role("a", "t2", "t2-0")
	k.says("requeue", first[0], first[1], second[0])
	k.waits(first[0])
	k.says("requeue", first[1], second[0])
	k.inTurn(first[1], "has its places for pods of role t2")

	k.goesOn(second[0])

	k.says("allow", first[0], first[1], second[0])
	k.says("requeue", first[1])
}

func TestAGroupWaitsUntilItsPodsRequestEnough(t *testing.T) {
	k := gathered(t, nil)
	k.demands("a", 1, "", corev1.ResourceList{"cpu": resource.MustParse("4")})
	pods := k.role("a", "", "p-0", "p-1")
	k.gate(pods[0], "requests 3 of the 4 of cpu it needs")
	more := k.role("a", "", "p-2")

	k.gate(pods[0], "")
	k.waits(pods[0])
	k.waits(pods[1])
	k.goesOn(more[0])
}

func TestDemandsThatCanNotBeMeant(t *testing.T) {
	for _, test := range []struct{ roles, problem string }{
		{"ps", `"ps" is no role=number`},
		{"ps=0", `"ps=0" is no role=number`},
		{"ps=x", `"ps=x" is no role=number`},
		{"p s=1", `"p s=1" is no role=number`},
		{"ps=1,ps=2", "role ps is named twice"},
		{strings.Repeat("r=1,", mostRoles) + "s=1", "more than 64 roles"},
	} {
		t.Run(test.problem, func(t *testing.T) {
			group := &PodGroup{}
			group.Metadata.Annotations = map[string]string{minMembers: test.roles}

			_, err := demandOf(group)

			if err == nil || !strings.Contains(err.Error(), "metadata.annotations["+minMembers+"]: ") || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("said %v, want %q", err, test.problem)
			}
		})
	}
	negative := &PodGroup{Spec: PodGroupSpec{MinResources: corev1.ResourceList{"cpu": resource.MustParse("-1")}}}
	if _, err := demandOf(negative); err == nil || err.Error() != "spec.minResources.cpu: -1 is negative" {
		t.Errorf("said %v", err)
	}
}

func TestAGroupWithABadDemandSaysSoUntilItIsMended(t *testing.T) {
	k := gathered(t, nil)
	k.demands("a", 1, "ps", nil)
	pods := k.role("a", "ps", "ps-0")
	k.gate(pods[0], "pod group default/a can't be used: metadata.annotations["+minMembers+"]")

	k.demands("a", 1, "ps=1", nil)

	k.gate(pods[0], "")
	k.goesOn(pods[0])
	k.passes(time.Second)
}
