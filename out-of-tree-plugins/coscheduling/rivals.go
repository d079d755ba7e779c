package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
)

// postFilter ends what would be a deadlock: groups that hold places which the
// others need. The first in order goes on, the last gives its places up for it.
func (c *coscheduling) postFilter(
	ctx context.Context, pod *corev1.Pod, _ *berth.Nodes, _ berth.Verdicts,
) (*berth.Nomination, *berth.Status) {
	g := c.joined(pod)
	if g == nil || g.closed(c.clock.Now()) != nil || g.complete() {
		return nil, refusal("no pod group to make room for")
	}
	if berth.CurrentCall(ctx).Profile.Shadow {
		return nil, refusal("pod group %s would give its places up, or make others do so", g.key)
	}
	last := c.lastWaiting()
	switch {
	case last == nil || (last == g && !c.rivals(g)):
		c.fail(ctx, g, fmt.Sprintf("no node for pod %s of pod group %s", pod.Name, g.key))
	case last == g || last.before(g):
		c.yield(g, c.firstWaiting())
	default:
		c.yield(last, g)
	}
	return nil, refusal("pod group %s finds no place together", g.key)
}

// yield has one group make room for another.
func (c *coscheduling) yield(junior, senior *group) {
	junior.yieldsTo = senior
	c.giveUp(junior, fmt.Sprintf("pod group %s makes room for pod group %s", junior.key, senior.key))
}

// firstWaiting and lastWaiting give the groups at the ends of the order among
// those that hold places and wait.
func (c *coscheduling) firstWaiting() *group {
	return c.extreme(func(a, b *group) bool { return a.before(b) })
}

func (c *coscheduling) lastWaiting() *group {
	return c.extreme(func(a, b *group) bool { return b.before(a) })
}

func (c *coscheduling) extreme(wins func(a, b *group) bool) *group {
	var found *group
	for _, each := range c.groups {
		if each.waiting() && (found == nil || wins(each, found)) {
			found = each
		}
	}
	return found
}

// rivals says whether another group holds places and waits.
func (c *coscheduling) rivals(g *group) bool {
	for _, each := range c.groups {
		if each != g && each.waiting() {
			return true
		}
	}
	return false
}
