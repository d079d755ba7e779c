package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
)

// group is one PodGroup with its pods.
//
//	gated --quorum exists--> trying --Reserve, Permit--> some hold places and wait
//	  ^                                                    |           |
//	  +--- one is refused, or time is up: all give up -----+           +--quorum holds--> all go on
type group struct {
	key groupKey
	// resource is nil until the PodGroup is seen, when it was deleted, and while
	// it has the problem.
	resource *PodGroup
	problem  string
	// members are the pods of the group that are alive, by UID.
	members map[string]*member
	// observed are all pods of the group, those that have ended too, by UID; status
	// is what was last seen or written of the resource's.
	observed map[string]podState
	status   PodGroupStatus
	// reporting says that the status will be looked at in a moment.
	reporting bool
	// alive and places are what the members, and those with a place, come to; nil
	// after a change.
	alive, places *tally
	// holding are the attempts of pods that have a reservation, by UID.
	holding map[string]uint32
	// yieldsTo is the group that this one made room for.
	yieldsTo *group
	// failures since the group was last complete, and the end of its back-off.
	failures  int
	notBefore time.Time
	// releasing and givingUp: the scheduler was notified, and may have to be notified again.
	releasing, givingUp bool
}

// member is a pod of a group.
type member struct {
	uid      string
	name     string
	role     string
	requests map[corev1.ResourceName]int64
	priority int32
	placed   bool
}

func newGroup(key groupKey) *group {
	return &group{
		key: key, members: map[string]*member{}, observed: map[string]podState{}, holding: map[string]uint32{},
	}
}

func memberOf(pod *corev1.Pod) *member {
	made := &member{
		uid: string(pod.UID), name: pod.Name, role: pod.Labels[roleLabel],
		requests: requestsOf(pod), placed: pod.Spec.NodeName != "",
	}
	if pod.Spec.Priority != nil {
		made.priority = *pod.Spec.Priority
	}
	return made
}

// changed forgets what the members come to: one came, went, or has a place or none.
func (g *group) changed() { g.alive, g.places = nil, nil }

// tallies are what all members come to, and those that have a place or hold one.
func (g *group) tallies() (alive, places *tally) {
	if g.alive == nil {
		g.alive, g.places = newTally(), newTally()
		for uid, each := range g.members {
			g.alive.add(each)
			if _, holds := g.holding[uid]; each.placed || holds {
				g.places.add(each)
			}
		}
	}
	return g.alive, g.places
}

// complete says that enough pods have or hold a place for all of them to go on.
func (g *group) complete() bool {
	_, places := g.tallies()
	return g.resource != nil && g.resource.demand.missing(places) == ""
}

// waiting says that pods of the group hold places that it can't use yet.
func (g *group) waiting() bool { return len(g.holding) > 0 && !g.complete() }

// unplaced gives the pods that are not on a node, by UID.
func (g *group) unplaced() []string {
	uids := []string{}
	for uid, each := range g.members {
		if !each.placed {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// idle gives the pods that neither are on a node nor hold a place, by UID.
func (g *group) idle() []string {
	return slices.DeleteFunc(g.unplaced(), func(uid string) bool {
		_, holds := g.holding[uid]
		return holds
	})
}

// drop takes a pod's place from the group; with the last one giving up is over.
func (g *group) drop(uid string) {
	delete(g.holding, uid)
	g.changed()
	g.givingUp = g.givingUp && len(g.holding) > 0
}

// priority is the highest of the group's pods.
func (g *group) priority() int32 {
	var highest int32
	for each := range maps.Values(g.members) {
		highest = max(highest, each.priority)
	}
	return highest
}

// before orders groups as the queue orders pods: higher priority first, then the
// older, then by name, so that two groups never take each other for the junior.
func (g *group) before(other *group) bool {
	if mine, theirs := g.priority(), other.priority(); mine != theirs {
		return mine > theirs
	}
	if mine, theirs := g.created(), other.created(); !mine.Equal(theirs) {
		return mine.Before(theirs)
	}
	return g.key.String() < other.key.String()
}

func (g *group) created() time.Time {
	if g.resource == nil {
		return time.Time{}
	}
	return g.resource.Metadata.CreationTimestamp.Time
}

// closed says why none of the group's pods may be tried now; nil if they may.
// Nothing of the cluster's state helps a group that is not there yet.
func (g *group) closed(now time.Time) *berth.Status {
	switch {
	case g.problem != "":
		return berth.NewStatus(berth.Pending, fmt.Sprintf("pod group %s can't be used: %s", g.key, g.problem))
	case g.resource == nil:
		return berth.NewStatus(berth.Pending, fmt.Sprintf("pod group %s was not found", g.key))
	}
	alive, _ := g.tallies()
	if missing := g.resource.demand.missing(alive); missing != "" {
		return berth.NewStatus(berth.Pending, fmt.Sprintf("pod group %s %s", g.key, missing))
	}
	switch {
	case g.complete():
		return nil
	case g.givingUp:
		return refusal("pod group %s gives its places up", g.key)
	case now.Before(g.notBefore):
		return refusal("pod group %s backs off after a failure", g.key)
	case g.yieldsTo != nil:
		return refusal("pod group %s makes room for pod group %s", g.key, g.yieldsTo.key)
	}
	return nil
}

// closedTo says why this pod may not be tried now; nil if it may.
func (g *group) closedTo(pod *corev1.Pod, now time.Time) *berth.Status {
	if why := g.closed(now); why != nil || g.complete() {
		return why
	}
	_, places := g.tallies()
	if _, holds := g.holding[string(pod.UID)]; holds {
		return nil
	}
	if role := g.resource.demand.crowds(pod.Labels[roleLabel], places); role != "" {
		return refusal("pod group %s has its places for pods of role %s", g.key, role)
	}
	return nil
}

func refusal(format string, arguments ...any) *berth.Status {
	return berth.NewStatus(berth.Unschedulable, fmt.Sprintf(format, arguments...))
}

// fails counts a failure; how long the group is not tried again: a second at
// first, twice as long each time, as pods do, up to the limit.
func (g *group) fails(now time.Time, limit time.Duration) time.Duration {
	wait := min(time.Second<<min(g.failures, 16), limit)
	g.failures++
	g.notBefore = now.Add(wait)
	return wait
}
