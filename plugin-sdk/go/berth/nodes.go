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

// IsAsked says whether the answer for that node matters.
func (n *Nodes) IsAsked(index int) bool {
	return n.candidates == nil || n.candidates[index>>3]>>(index&7)&1 == 1
}

// Asked yields the nodes that are asked about, with their indices: often fewer
// than Len. A vector has an entry for each node all the same, so make it with
// [Nodes.Verdicts] or [Nodes.Scores], or write the entry at the index.
func (n *Nodes) Asked() iter.Seq2[int, *corev1.Node] {
	return func(yield func(int, *corev1.Node) bool) {
		for index, node := range n.mirror.nodes {
			if n.IsAsked(index) && !yield(index, node) {
				return
			}
		}
	}
}

// Verdicts makes FilterNodes' answer: why each node that is asked about is turned
// down, nil where it passes.
func (n *Nodes) Verdicts(reject func(index int, node *corev1.Node) *Reason) Verdicts {
	return rejected(n.Len(), n.Asked(), reject)
}

// Scores makes ScoreNodes' answer: the score of each node that is asked about.
func (n *Nodes) Scores(score func(index int, node *corev1.Node) int64) []int64 {
	points := make([]int64, n.Len())
	for index, node := range n.Asked() {
		points[index] = score(index, node)
	}
	return points
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
