package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/plugin-sdk/go/berth"
)

// settings are the plugin's arguments, named as in scheduler-plugins'
// CoschedulingArgs.
type settings struct {
	PermitWaitingTimeSeconds int64 `json:"permitWaitingTimeSeconds" minimum:"1" doc:"how long a pod waits for the rest of its group, where the PodGroup doesn't say"`
	PodGroupBackoffSeconds   int64 `json:"podGroupBackoffSeconds" minimum:"1" doc:"how long at most a group is not tried again after it failed: a second at first, twice as long each time"`
}

// sayAgain is how soon pods are queued, let go or stopped once more: the first
// word may have come before the scheduler knew that they wait.
const sayAgain = time.Second

// reportDelay is how long what happens to a group is gathered into one status.
const reportDelay = time.Second

// coscheduling knows all groups. Its methods are called one at a time.
type coscheduling struct {
	plugin    *berth.Plugin
	arguments *berth.ProfileArguments[settings]
	requeue   *berth.Requeue
	groups    map[groupKey]*group
	// groupOf says which group a member belonged to when it was last seen, and
	// uids how it is known, by namespace and name.
	groupOf map[string]*group
	uids    map[types.NamespacedName]string
	// observedIn says whose status counts a pod, by UID.
	observedIn map[string]*group
	clock      *berth.Clock
	// writer is nil where there is no API server to write statuses to; settled says
	// that all pods and groups are known; shadow, by profile, that it has no say.
	writer  *statusWriter
	settled bool
	shadow  map[string]bool
}

func newCoscheduling(writer *statusWriter) *coscheduling {
	c := &coscheduling{
		requeue:    &berth.Requeue{},
		groups:     map[groupKey]*group{},
		groupOf:    map[string]*group{},
		uids:       map[types.NamespacedName]string{},
		observedIn: map[string]*group{},
		clock:      &berth.Clock{},
		writer:     writer,
		shadow:     map[string]bool{},
	}
	c.arguments = berth.ArgumentsOf(
		settings{PermitWaitingTimeSeconds: 60, PodGroupBackoffSeconds: 10},
		func(profile berth.Profile, _ settings) error {
			c.shadow[profile.Name] = profile.Shadow
			return nil
		},
	)
	c.plugin = &berth.Plugin{
		Name:      "coscheduling",
		Version:   "0.2.0",
		Arguments: c.arguments,

		PreEnqueue: c.gate,
		PreFilter:  c.gate,
		PostFilter: c.postFilter,
		Reserve:    c.reserve,
		Unreserve:  c.unreserve,
		Permit:     c.permit,
		PostBind:   c.postBind,
		Requeue:    c.requeue,
		Clock:      c.clock,
		// Pods that gave up with their group come back when there may be room.
		Events: []berth.EventInterest{
			{Resource: "Pod", Actions: []berth.Action{berth.Delete, berth.UpdatePodScaleDown}},
			{Resource: "Node", Actions: []berth.Action{
				berth.Add, berth.UpdateNodeAllocatable, berth.UpdateNodeLabel, berth.UpdateNodeTaint,
			}},
		},
		Resources:      []berth.WatchedResource{watchedGroups, watchedMembers},
		StateReset:     c.stateReset,
		StateSettled:   c.stateSettled,
		ObjectUpserted: c.objectUpserted,
		ObjectRemoved:  c.objectRemoved,
	}
	if writer != nil {
		c.plugin.Metrics = writer.metrics
	}
	return c
}

// gate keeps pods out of the queue, and out of a cycle, that can't be of use to
// their group now.
func (c *coscheduling) gate(_ context.Context, pod *corev1.Pod) *berth.Status {
	g := c.joined(pod)
	if g == nil {
		return nil
	}
	return g.closedTo(pod, c.clock.Now())
}

// reserve counts the pod's place for its group.
func (c *coscheduling) reserve(ctx context.Context, pod *corev1.Pod, _ *corev1.Node) (*berth.MetadataPatch, *berth.Status) {
	if g := c.joined(pod); g != nil {
		key := berth.CurrentCall(ctx).Key
		g.holding[key.UID] = key.Attempt
		g.changed()
	}
	return nil, nil
}

// permit lets all go on with the pod that completes the quorum, and has the
// others wait for it.
func (c *coscheduling) permit(ctx context.Context, pod *corev1.Pod, _ *corev1.Node) (time.Duration, *berth.Status) {
	g := c.joined(pod)
	if g == nil {
		return 0, nil
	}
	if why := g.closed(c.clock.Now()); why != nil {
		return 0, berth.NewStatus(berth.Unschedulable, why.Reasons...)
	}
	if g.complete() {
		c.release(g)
		return 0, nil
	}
	if len(g.holding) == 1 {
		c.gather(g)
	}
	otherwise := time.Duration(c.arguments.For(berth.CurrentCall(ctx).Profile.Name).PermitWaitingTimeSeconds) * time.Second
	return g.resource.timeout(otherwise), nil
}

// unreserve takes the pod's place from its group; a group that was still waiting
// gives all its places up.
func (c *coscheduling) unreserve(ctx context.Context, key berth.PodKey, _ string) {
	g := c.groupOf[key.UID]
	if g == nil || g.holding[key.UID] != key.Attempt {
		return
	}
	lost := !g.complete() && !g.givingUp
	g.drop(key.UID)
	if lost {
		c.fail(ctx, g, fmt.Sprintf("pod %s of pod group %s lost its place", key.Name, g.key))
	}
	c.settle(g)
}

// postBind turns a held place into one that the pod has.
func (c *coscheduling) postBind(_ context.Context, key berth.PodKey, _ string) {
	g := c.groupOf[key.UID]
	if g == nil {
		return
	}
	if each := g.members[key.UID]; each != nil {
		each.placed = true
	}
	g.drop(key.UID)
}
