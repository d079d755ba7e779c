package berthtest

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const chunkSize = 256

// Cluster is the host's side of the state: nodes by index, pods by UID, other
// objects by key, and what changed since the last generation.
type Cluster struct {
	Generation int64
	names      []string
	nodes      map[string]*corev1.Node
	pods       map[string]*pb.PodUpsert
	objects    map[berth.ObjectKey]json.RawMessage
	pending    []*pb.Change
}

func newCluster() *Cluster {
	return &Cluster{
		Generation: 1,
		nodes:      map[string]*corev1.Node{},
		pods:       map[string]*pb.PodUpsert{},
		objects:    map[berth.ObjectKey]json.RawMessage{},
	}
}

// Names gives the nodes by index.
func (c *Cluster) Names() []string { return slices.Clone(c.names) }

// PutNode adds or changes a node.
func (c *Cluster) PutNode(node *corev1.Node) {
	if _, known := c.nodes[node.Name]; !known {
		c.names = append(c.names, node.Name)
	}
	c.nodes[node.Name] = node
	c.change(&pb.Change{Change: &pb.Change_NodeUpsert{NodeUpsert: c.node(slices.Index(c.names, node.Name))}})
}

// RemoveNode takes a node away; the last one moves to its index.
func (c *Cluster) RemoveNode(name string) {
	index, last := slices.Index(c.names, name), len(c.names)-1
	c.names[index] = c.names[last]
	c.names = c.names[:last]
	delete(c.nodes, name)
	removal := &pb.NodeRemove{Index: uint32(index), Name: name}
	c.change(&pb.Change{Change: &pb.Change_NodeRemove{NodeRemove: removal}})
}

// PutPod counts a pod on a node. The attempt is that of an assumed pod, else 0.
func (c *Cluster) PutPod(pod *corev1.Pod, nodeName string, stage berth.PodStage, attempt uint32) {
	upsert := &pb.PodUpsert{
		Uid: string(pod.UID), NodeName: nodeName, Stage: pb.PodStage(stage), Object: encoded(pod), Attempt: attempt,
	}
	c.pods[upsert.Uid] = upsert
	c.change(&pb.Change{Change: &pb.Change_PodUpsert{PodUpsert: upsert}})
}

// RemovePod counts a pod no longer.
func (c *Cluster) RemovePod(pod *corev1.Pod) {
	delete(c.pods, string(pod.UID))
	c.change(&pb.Change{Change: &pb.Change_PodRemove{PodRemove: &pb.PodRemove{Uid: string(pod.UID)}}})
}

// PutObject brings an object of a watched kind; anything that encodes to its JSON.
func (c *Cluster) PutObject(key berth.ObjectKey, object any) {
	c.objects[key] = encoded(object)
	upsert := &pb.ObjectUpsert{Key: objectKey(key), Object: c.objects[key]}
	c.change(&pb.Change{Change: &pb.Change_ObjectUpsert{ObjectUpsert: upsert}})
}

// RemoveObject takes one away.
func (c *Cluster) RemoveObject(key berth.ObjectKey) {
	delete(c.objects, key)
	c.change(&pb.Change{Change: &pb.Change_ObjectRemove{ObjectRemove: &pb.ObjectRemove{Key: objectKey(key)}}})
}

func (c *Cluster) change(change *pb.Change) { c.pending = append(c.pending, change) }

// step gives everything since the last step as a delta to a new generation.
func (c *Cluster) step() *pb.Delta {
	delta := &pb.Delta{
		BaseGeneration: c.Generation, Generation: c.Generation + 1,
		Changes: c.pending, NodeCount: uint32(len(c.names)),
	}
	c.Generation++
	c.pending = nil
	return delta
}

// transfer gives the full state.
func (c *Cluster) transfer(epoch string) []*pb.SyncRequest {
	c.pending = nil
	var changes []*pb.Change
	for index := range c.names {
		changes = append(changes, &pb.Change{Change: &pb.Change_NodeUpsert{NodeUpsert: c.node(index)}})
	}
	for _, upsert := range c.pods {
		changes = append(changes, &pb.Change{Change: &pb.Change_PodUpsert{PodUpsert: upsert}})
	}
	for key, object := range c.objects {
		upsert := &pb.ObjectUpsert{Key: objectKey(key), Object: object}
		changes = append(changes, &pb.Change{Change: &pb.Change_ObjectUpsert{ObjectUpsert: upsert}})
	}
	messages := []*pb.SyncRequest{{Body: &pb.SyncRequest_Begin{Begin: &pb.Begin{Epoch: epoch}}}}
	for part := range slices.Chunk(changes, chunkSize) {
		messages = append(messages, &pb.SyncRequest{Body: &pb.SyncRequest_Chunk{Chunk: &pb.Chunk{Changes: part}}})
	}
	commit := &pb.Commit{Generation: c.Generation, NodeCount: uint32(len(c.names))}
	return append(messages, &pb.SyncRequest{Body: &pb.SyncRequest_Commit{Commit: commit}})
}

func (c *Cluster) node(index int) *pb.NodeUpsert {
	name := c.names[index]
	return &pb.NodeUpsert{Index: uint32(index), Name: name, Object: encoded(c.nodes[name])}
}

func objectKey(key berth.ObjectKey) *pb.ObjectKey {
	return &pb.ObjectKey{
		Group: key.Group, Version: key.Version, Resource: key.Resource, Namespace: key.Namespace, Name: key.Name,
	}
}

// encoded gives an object's JSON; what a test makes of Go types has one.
func encoded(object any) []byte {
	data, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return data
}
