package main

import (
	"encoding/json"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/plugin-sdk/go/berth"
)

// How the plugin knows which groups there are, and which pods they have.

// joined gives the pod's group, and counts the pod among its members; nil if it
// has none.
func (c *coscheduling) joined(pod *corev1.Pod) *group {
	name := pod.Labels[groupLabel]
	if name == "" {
		return nil
	}
	g := c.group(groupKey{pod.Namespace, name})
	if g.members[string(pod.UID)] == nil {
		c.join(g, memberOf(pod))
	}
	return g
}

func (c *coscheduling) group(key groupKey) *group {
	g := c.groups[key]
	if g == nil {
		g = newGroup(key)
		c.groups[key] = g
	}
	return g
}

// join counts a pod among a group's members; the one that makes the quorum
// possible brings the others into the queue.
func (c *coscheduling) join(g *group, joining *member) {
	before := g.closed(c.clock.Now())
	g.members[joining.uid] = joining
	g.changed()
	c.groupOf[joining.uid] = g
	c.uids[types.NamespacedName{Namespace: g.key.namespace, Name: joining.name}] = joining.uid
	if before != nil {
		c.tryAgain(g, fmt.Sprintf("pod group %s has the pods it needs", g.key))
	}
}

// part takes a pod out of its group; a group with nothing left is forgotten.
func (c *coscheduling) part(uid string) {
	g := c.groupOf[uid]
	if g == nil {
		return
	}
	delete(c.groupOf, uid)
	delete(g.members, uid)
	g.drop(uid)
	c.forgetEmpty(g)
	c.settle(g)
}

// forgetEmpty forgets a group of which nothing is left.
func (c *coscheduling) forgetEmpty(g *group) {
	if g.resource == nil && g.problem == "" && len(g.members) == 0 && len(g.observed) == 0 {
		delete(c.groups, g.key)
	}
}

func (c *coscheduling) stateReset(epochChanged bool) {
	c.settled = false
	for _, g := range c.groups {
		g.resource, g.problem, g.members, g.observed = nil, "", map[string]*member{}, map[string]podState{}
		g.changed()
		if epochChanged {
			g.holding, g.yieldsTo, g.givingUp = map[string]uint32{}, nil, false
		}
	}
	clear(c.groupOf)
	clear(c.uids)
	clear(c.observedIn)
}

// stateSettled forgets what the transfer did not bring.
func (c *coscheduling) stateSettled() {
	c.settled = true
	for _, g := range c.groups {
		for uid := range g.holding {
			if g.members[uid] == nil {
				g.drop(uid)
			}
		}
		c.forgetEmpty(g)
		c.report(g)
	}
}

func (c *coscheduling) objectUpserted(key berth.ObjectKey, object json.RawMessage) error {
	if key.Resource == watchedMembers.Resource {
		return c.podUpserted(object)
	}
	g := c.group(groupKey{key.Namespace, key.Name})
	before := g.closed(c.clock.Now())
	resource, err := readPodGroup(object)
	g.resource, g.problem = resource, ""
	if err != nil {
		// Its pods wait until it is mended, and say why.
		slog.Error("pod group ignored", "group", key.Name, "namespace", key.Namespace, "error", err)
		g.resource, g.problem = nil, err.Error()
	} else {
		g.status = resource.Status
	}
	if before != nil {
		c.tryAgain(g, fmt.Sprintf("pod group %s changed", g.key))
	}
	if len(g.holding) > 0 && g.complete() {
		c.release(g)
	}
	c.report(g)
	return nil
}

func (c *coscheduling) podUpserted(object json.RawMessage) error {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(object, pod); err != nil {
		return err
	}
	uid, name := string(pod.UID), pod.Labels[groupLabel]
	key := groupKey{pod.Namespace, name}
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	c.observe(uid, name, key, stateOf(pod))
	if known := c.groupOf[uid]; known != nil && (over || known.key != key) {
		c.part(uid)
	}
	if over || name == "" {
		return nil
	}
	c.join(c.group(key), memberOf(pod))
	return nil
}

func (c *coscheduling) objectRemoved(key berth.ObjectKey) {
	if key.Resource != watchedMembers.Resource {
		if g := c.groups[groupKey{key.Namespace, key.Name}]; g != nil {
			g.resource, g.problem, g.status = nil, "", PodGroupStatus{}
			if c.writer != nil {
				c.writer.forget(g.key)
			}
			c.giveUp(g, fmt.Sprintf("pod group %s was deleted", g.key))
			c.forgetEmpty(g)
		}
		return
	}
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	uid := c.uids[name]
	c.part(uid)
	c.overlook(uid)
	delete(c.uids, name)
}

// observe has a pod, alive or ended, count in the status of its group.
func (c *coscheduling) observe(uid, name string, key groupKey, state podState) {
	if known := c.observedIn[uid]; known != nil && known.key != key {
		c.overlook(uid)
	}
	if name == "" {
		return
	}
	g := c.group(key)
	g.observed[uid], c.observedIn[uid] = state, g
	c.uids[types.NamespacedName{Namespace: key.namespace, Name: state.name}] = uid
	c.report(g)
}

// overlook has a pod count in no status any more.
func (c *coscheduling) overlook(uid string) {
	g := c.observedIn[uid]
	if g == nil {
		return
	}
	delete(g.observed, uid)
	delete(c.observedIn, uid)
	c.report(g)
	c.forgetEmpty(g)
}

// report has the group's status written in a moment, once for all that happens until then.
func (c *coscheduling) report(g *group) {
	if c.writer != nil && c.settled && !g.reporting {
		g.reporting = true
		c.clock.After(reportDelay, func() { c.write(g) })
	}
}

// write hands the group's status on where it is another than before. In a
// profile's shadow nothing is written.
func (c *coscheduling) write(g *group) {
	g.reporting = false
	if !c.settled || g.resource == nil || !c.acts() {
		return
	}
	status := statusAfter(g.status, g.resource.Spec.MinMember, g.observed, c.clock.Now())
	if !status.equal(g.status) {
		g.status = status
		c.writer.put(g.key, status)
	}
}

// acts says that a profile uses the plugin, and not in shadow alone.
func (c *coscheduling) acts() bool {
	for _, shadow := range c.shadow {
		if !shadow {
			return true
		}
	}
	return false
}
