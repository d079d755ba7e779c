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
	if g.resource == nil && len(g.members) == 0 {
		delete(c.groups, g.key)
	}
	c.settle(g)
}

func (c *coscheduling) stateReset(epochChanged bool) {
	for _, g := range c.groups {
		g.resource, g.members = nil, map[string]*member{}
		if epochChanged {
			g.holding, g.yieldsTo, g.givingUp = map[string]uint32{}, nil, false
		}
	}
	clear(c.groupOf)
	clear(c.uids)
}

// stateSettled forgets what the transfer did not bring.
func (c *coscheduling) stateSettled() {
	for key, g := range c.groups {
		for uid := range g.holding {
			if g.members[uid] == nil {
				g.drop(uid)
			}
		}
		if g.resource == nil && len(g.members) == 0 {
			delete(c.groups, key)
		}
	}
}

func (c *coscheduling) objectUpserted(key berth.ObjectKey, object json.RawMessage) error {
	if key.Resource == watchedMembers.Resource {
		return c.podUpserted(object)
	}
	resource, err := readPodGroup(object)
	if err != nil {
		// The API server lets it pass only where its schema is not installed: the pods wait until it is mended.
		slog.Error("pod group ignored", "group", key.Name, "namespace", key.Namespace, "error", err)
		resource = nil
	}
	g := c.group(groupKey{key.Namespace, key.Name})
	before := g.closed(c.clock.Now())
	g.resource = resource
	if before != nil {
		c.tryAgain(g, fmt.Sprintf("pod group %s changed", g.key))
	}
	if len(g.holding) > 0 && g.complete() {
		c.release(g)
	}
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
			g.resource = nil
			c.giveUp(g, fmt.Sprintf("pod group %s was deleted", g.key))
		}
		return
	}
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	c.part(c.uids[name])
	delete(c.uids, name)
}
