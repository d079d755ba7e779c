package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"berth.dev/plugin-sdk/go/berth"
)

// How a group's waiting ends: all go on, or all give their places up.

// gather brings the others into the queue for as long as pods of the group wait
// for them.
func (c *coscheduling) gather(g *group) {
	if idle := g.idle(); len(idle) > 0 && g.waiting() && !g.givingUp {
		c.requeue.Pods(fmt.Sprintf("pod group %s gathers", g.key), idle...)
		c.clock.After(sayAgain, func() { c.gather(g) })
	}
}

// release lets the waiting pods of a complete group go on, and groups that made
// room for it try again.
func (c *coscheduling) release(g *group) {
	g.failures = 0
	if !g.releasing {
		g.releasing = true
		c.allow(g)
		if idle := g.idle(); len(idle) > 0 && len(g.resource.demand.roles) > 0 {
			c.requeue.Pods(fmt.Sprintf("pod group %s has room for pods of all roles", g.key), idle...)
		}
	}
	c.settle(g)
}

func (c *coscheduling) allow(g *group) {
	if g.releasing = len(g.holding) > 0 && g.complete(); g.releasing {
		c.requeue.Allow(fmt.Sprintf("pod group %s is complete", g.key), g.unplaced()...)
		c.clock.After(sayAgain, func() { c.allow(g) })
	}
}

// fail has a group give up and back off, unless it does already.
func (c *coscheduling) fail(ctx context.Context, g *group, cause string) {
	if now := c.clock.Now(); !now.Before(g.notBefore) && g.yieldsTo == nil {
		limit := c.arguments.For(berth.CurrentCall(ctx).Profile.Name).PodGroupBackoffSeconds
		wait := g.fails(now, time.Duration(limit)*time.Second)
		c.clock.After(wait, func() { c.tryAgain(g, fmt.Sprintf("the back-off of pod group %s is over", g.key)) })
	}
	c.giveUp(g, cause)
}

// giveUp has all waiting pods of a group give their places back.
func (c *coscheduling) giveUp(g *group, cause string) {
	if len(g.holding) > 0 && !g.givingUp {
		slog.Info("pod group gives up", "group", g.key.String(), "pods", len(g.holding), "cause", cause)
		g.givingUp = true
		c.stop(g, cause)
	}
	c.settle(g)
}

func (c *coscheduling) stop(g *group, cause string) {
	if g.givingUp {
		c.requeue.Reject(cause, g.unplaced()...)
		c.clock.After(sayAgain, func() { c.stop(g, cause) })
	}
}

// settle lets groups try again that made room for one which does not wait any more.
func (c *coscheduling) settle(g *group) {
	if g.waiting() {
		return
	}
	for _, other := range c.yielding(g) {
		other.yieldsTo = nil
		c.tryAgain(other, fmt.Sprintf("pod group %s needs no more room", g.key))
	}
}

// yielding gives the groups that make room for one, in their order: what is said of
// them is then the same in every run of a simulation.
func (c *coscheduling) yielding(g *group) []*group {
	found := []*group{}
	for _, other := range c.groups {
		if other.yieldsTo == g {
			found = append(found, other)
		}
	}
	slices.SortFunc(found, func(a, b *group) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return found
}

// tryAgain queues a group's pods, all at once so that they stand together.
func (c *coscheduling) tryAgain(g *group, cause string) {
	if g.givingUp {
		c.clock.After(sayAgain, func() { c.tryAgain(g, cause) })
	} else if uids := g.unplaced(); len(uids) > 0 && g.closed(c.clock.Now()) == nil {
		c.requeue.Pods(cause, uids...)
	}
}
