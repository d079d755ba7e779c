package berth

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// PlacedPod is a pod that counts on a node. Attempt is the one that assumed it,
// 0 in other stages.
type PlacedPod struct {
	Pod      *corev1.Pod
	UID      string
	NodeName string
	Stage    PodStage
	Attempt  uint32
}

// ObjectKey names an object of a watched kind; Resource is the plural.
type ObjectKey struct {
	Group, Version, Resource, Namespace, Name string
}

// syncError says why a message of the state stream can't be applied.
type syncError struct {
	reason pb.NackReason
	text   string
}

func (e *syncError) Error() string { return e.text }

func outOfSync(reason pb.NackReason, format string, arguments ...any) *syncError {
	return &syncError{reason, fmt.Sprintf(format, arguments...)}
}

func mismatch(format string, arguments ...any) *syncError {
	return outOfSync(pb.NackReason_NACK_REASON_MISMATCH, format, arguments...)
}

// mirror is what the scheduler's state stream said, up to one generation: nodes
// by dense index, pods by UID, other objects by key.
//
//	(nothing) --commit--> (epoch, generation) --delta--> (epoch, later generation)
//	    ^                        |
//	    +------ syncError -------+    a mirror that can't follow holds nothing, never something wrong
type mirror struct {
	plugin     *Plugin
	epoch      string
	generation int64
	lastEpoch  string // the epoch last held, which a mirror that lost its way remembers
	// layoutSince is the first generation from which on every node has kept its index.
	layoutSince int64
	nodes       []*corev1.Node
	names       []string
	index       map[string]int
	pods        map[string]*PlacedPod
	onNode      map[string]map[string]*PlacedPod
	objects     map[ObjectKey]json.RawMessage
}

func newMirror(plugin *Plugin) *mirror {
	made := &mirror{plugin: plugin}
	made.clear()
	return made
}

// replace holds what a full transfer brought, and nothing else.
func (m *mirror) replace(epoch string, commit *pb.Commit, steps []step) *syncError {
	changed := epoch != m.lastEpoch
	m.lastEpoch = epoch
	m.clear()
	if err := m.reset(changed); err != nil {
		return err
	}
	if _, err := m.apply(steps, commit.NodeCount); err != nil {
		return err
	}
	m.epoch, m.generation, m.layoutSince = epoch, commit.Generation, commit.Generation
	if m.plugin.StateSettled != nil {
		if err := m.hook("StateSettled", m.plugin.StateSettled); err != nil {
			m.drop()
			return err
		}
	}
	return nil
}

// follow takes one step; a step behind what is held changes nothing. With a gap
// what is held stays.
func (m *mirror) follow(delta *pb.Delta, decode func([]*pb.Change) ([]step, *syncError)) *syncError {
	if delta.Generation <= m.generation {
		return nil
	}
	if delta.BaseGeneration != m.generation {
		return outOfSync(pb.NackReason_NACK_REASON_GAP, "delta %d to %d, but %d is held",
			delta.BaseGeneration, delta.Generation, m.generation)
	}
	steps, err := decode(delta.Changes)
	if err != nil {
		m.drop()
		return err
	}
	moved, err := m.apply(steps, delta.NodeCount)
	if err != nil {
		return err
	}
	if moved {
		m.layoutSince = delta.Generation
	}
	m.generation = delta.Generation
	return nil
}

// drop holds nothing, until the next full transfer.
func (m *mirror) drop() {
	m.clear()
	m.epoch, m.layoutSince = "", 0
}

func (m *mirror) clear() {
	m.generation = 0
	m.nodes, m.names = nil, nil
	m.index = map[string]int{}
	m.pods = map[string]*PlacedPod{}
	m.onNode = map[string]map[string]*PlacedPod{}
	m.objects = map[ObjectKey]json.RawMessage{}
}

// apply takes the steps and checks the count; true if nodes came, went or moved.
func (m *mirror) apply(steps []step, nodeCount uint32) (bool, *syncError) {
	before := len(m.nodes)
	moved := false
	for i := range steps {
		moved = moved || steps[i].kind == nodeRemoved
		if err := m.take(&steps[i]); err != nil {
			m.drop()
			return false, err
		}
	}
	if len(m.nodes) != int(nodeCount) {
		err := mismatch("%d nodes are held, the host has %d", len(m.nodes), nodeCount)
		m.drop()
		return false, err
	}
	return moved || before != len(m.nodes), nil
}

func (m *mirror) take(s *step) *syncError {
	switch s.kind {
	case nodeUpserted:
		return m.putNode(s.index, s.name, s.node)
	case nodeRemoved:
		return m.takeNode(s.index, s.name)
	case podUpserted:
		return m.putPod(s.placed)
	case podRemoved:
		return m.takePod(s.name)
	case objectUpserted:
		return m.putObject(s.key, s.object)
	default:
		return m.takeObject(s.key)
	}
}

func (m *mirror) putNode(index int, name string, node *corev1.Node) *syncError {
	at, known := m.index[name]
	switch {
	case !known && index == len(m.nodes):
		m.nodes, m.names = append(m.nodes, node), append(m.names, name)
		m.index[name] = index
	case known && at == index:
		m.nodes[index] = node
	default:
		return mismatch("node %q can't be at index %d", name, index)
	}
	if m.plugin.NodeUpserted == nil {
		return nil
	}
	return m.hook("NodeUpserted", func() { m.plugin.NodeUpserted(index, node) })
}

func (m *mirror) takeNode(index int, name string) *syncError {
	if at, known := m.index[name]; !known || at != index {
		return mismatch("node %q is not at index %d", name, index)
	}
	last := len(m.nodes) - 1
	delete(m.index, name)
	if index != last {
		m.nodes[index], m.names[index] = m.nodes[last], m.names[last]
		m.index[m.names[index]] = index
	}
	m.nodes[last] = nil
	m.nodes, m.names = m.nodes[:last], m.names[:last]
	if m.plugin.NodeRemoved == nil {
		return nil
	}
	return m.hook("NodeRemoved", func() { m.plugin.NodeRemoved(index, last) })
}

func (m *mirror) putPod(placed *PlacedPod) *syncError {
	if before := m.pods[placed.UID]; before != nil && before.NodeName != placed.NodeName {
		if err := m.takePod(placed.UID); err != nil {
			return err
		}
	}
	m.pods[placed.UID] = placed
	there := m.onNode[placed.NodeName]
	if there == nil {
		there = map[string]*PlacedPod{}
		m.onNode[placed.NodeName] = there
	}
	there[placed.UID] = placed
	if m.plugin.PodUpserted == nil {
		return nil
	}
	return m.hook("PodUpserted", func() { m.plugin.PodUpserted(placed) })
}

func (m *mirror) takePod(uid string) *syncError {
	placed := m.pods[uid]
	if placed == nil {
		return nil
	}
	delete(m.pods, uid)
	delete(m.onNode[placed.NodeName], uid)
	if len(m.onNode[placed.NodeName]) == 0 {
		delete(m.onNode, placed.NodeName)
	}
	if m.plugin.PodRemoved == nil {
		return nil
	}
	return m.hook("PodRemoved", func() { m.plugin.PodRemoved(placed) })
}

func (m *mirror) putObject(key ObjectKey, object json.RawMessage) *syncError {
	m.objects[key] = object
	if m.plugin.ObjectUpserted == nil {
		return nil
	}
	var refused error
	if err := m.hook("ObjectUpserted", func() { refused = m.plugin.ObjectUpserted(key, object) }); err != nil {
		return err
	}
	if refused != nil {
		return badObject("%s %s/%s: %v", key.Resource, key.Namespace, key.Name, refused)
	}
	return nil
}

func (m *mirror) takeObject(key ObjectKey) *syncError {
	if _, known := m.objects[key]; !known {
		return nil
	}
	delete(m.objects, key)
	if m.plugin.ObjectRemoved == nil {
		return nil
	}
	return m.hook("ObjectRemoved", func() { m.plugin.ObjectRemoved(key) })
}

func (m *mirror) reset(epochChanged bool) *syncError {
	if m.plugin.StateReset == nil {
		return nil
	}
	return m.hook("StateReset", func() { m.plugin.StateReset(epochChanged) })
}

// hook calls the author; what fails may have left the author's columns wrong, so
// everything is asked for anew.
func (m *mirror) hook(name string, function func()) (err *syncError) {
	defer func() {
		if problem := recover(); problem != nil {
			logPanic(name, problem)
			err = badObject("%s: %v", name, problem)
		}
	}()
	function()
	return nil
}
