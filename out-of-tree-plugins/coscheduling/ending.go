package main

import (
	"fmt"
	"log/slog"
	"time"
)

// How a group's waiting ends: all go on, or all give their places up.

// release lets the waiting pods of a complete group go on, and groups that made
// room for it try again.
func (c *coscheduling) release(g *group) {
	if !g.releasing {
		g.releasing = true
		c.allow(g)
	}
	c.settle(g)
}

func (c *coscheduling) allow(g *group) {
	if g.releasing = len(g.holding) > 0 && g.complete(); g.releasing {
		c.requeue.Allow(fmt.Sprintf("pod group %s is complete", g.key), g.unplaced()...)
		c.later(sayAgain, func() { c.allow(g) })
	}
}

// giveUp has all waiting pods of a group give their places back.
func (c *coscheduling) giveUp(g *group, backoff time.Duration, cause string) {
	if backoff > 0 && !c.now().Before(g.notBefore) {
		g.notBefore = c.now().Add(backoff)
		c.later(backoff, func() { c.tryAgain(g, "the back-off of pod group "+g.key.String()+" is over") })
	}
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
		c.later(sayAgain, func() { c.stop(g, cause) })
	}
}

// settle lets groups try again that made room for one which does not wait any more.
func (c *coscheduling) settle(g *group) {
	if g.waiting() {
		return
	}
	for _, other := range c.groups {
		if other.yieldsTo == g {
			other.yieldsTo = nil
			c.tryAgain(other, fmt.Sprintf("pod group %s needs no more room", g.key))
		}
	}
}

// tryAgain queues a group's pods, all at once so that they stand together.
func (c *coscheduling) tryAgain(g *group, cause string) {
	if uids := g.unplaced(); len(uids) > 0 && g.closed(c.now()) == "" {
		c.requeue.Pods(cause, uids...)
	}
}
