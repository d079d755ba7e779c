package berth

import (
	"encoding/json"
	"iter"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// Nodes is all nodes of the generation that a call is about, by index. It is
// valid until the function that was given it returns.
type Nodes struct {
	mirror     *mirror
	candidates []byte // a bit a node; nil means all
}

// Len is the number of nodes, asked about or not.
func (n *Nodes) Len() int { return len(n.mirror.nodes) }

// At gives the node at an index.
func (n *Nodes) At(index int) *corev1.Node { return n.mirror.nodes[index] }

// Asked says whether the answer for that node matters.
func (n *Nodes) Asked(index int) bool {
	return n.candidates == nil || n.candidates[index>>3]>>(index&7)&1 == 1
}

// All yields the nodes that are asked about, with their indices.
func (n *Nodes) All() iter.Seq2[int, *corev1.Node] {
	return func(yield func(int, *corev1.Node) bool) {
		for index, node := range n.mirror.nodes {
			if n.Asked(index) && !yield(index, node) {
				return
			}
		}
	}
}

// Index gives a node's index by name.
func (n *Nodes) Index(name string) (int, bool) {
	index, known := n.mirror.index[name]
	return index, known
}

// PodsOn yields the pods that count on a node; none without WantsPods.
func (n *Nodes) PodsOn(nodeName string) iter.Seq[*PlacedPod] {
	return maps.Values(n.mirror.onNode[nodeName])
}

// Object gives a watched object as JSON, nil if there is none.
func (n *Nodes) Object(key ObjectKey) json.RawMessage { return n.mirror.objects[key] }

// Objects yields all watched objects as JSON.
func (n *Nodes) Objects() iter.Seq2[ObjectKey, json.RawMessage] { return maps.All(n.mirror.objects) }
