package berthtest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const maxAlone = 32

// Verdict is the plugin's word on a pod, and on each node that it turned down.
type Verdict struct {
	Status   berth.Status
	Rejected map[string]berth.Reason
	names    []string
}

// Passes says whether the node can take the pod.
func (v Verdict) Passes(nodeName string) bool {
	_, rejected := v.Rejected[nodeName]
	fits := v.Status.Code == berth.Success || v.Status.Code == berth.Skip
	return fits && !rejected && slices.Contains(v.names, nodeName)
}

// Passing gives the nodes that can take the pod, by index.
func (v Verdict) Passing() []string {
	passing := []string{}
	for _, name := range v.names {
		if v.Passes(name) {
			passing = append(passing, name)
		}
	}
	return passing
}

// about says why the node is turned down, or what is said of the pod as a whole;
// "" where it passes.
func (v Verdict) about(nodeName string) string {
	if reason, rejected := v.Rejected[nodeName]; rejected {
		return reason.Code.String() + ": " + reason.Text
	}
	if v.Status.Code == berth.Success {
		return ""
	}
	return fmt.Sprint(v.Status)
}

// Placement is a set of nodes that a pod group may go to as a whole.
type Placement struct {
	Name  string
	Nodes []string
}

func (h *Host) call(pod *corev1.Pod) *pb.Call {
	return &pb.Call{
		Epoch: h.Epoch, Generation: h.Cluster.Generation, Profile: Profile,
		Pod: &pb.PodRef{
			Uid: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name,
			Attempt: h.attempt(pod), Object: encoded(pod),
		},
	}
}

func (h *Host) attempt(pod *corev1.Pod) uint32 { return max(1, h.attempts[string(pod.UID)]) }

func (h *Host) candidates(names []string) *pb.Candidates {
	if !h.Listed || names == nil {
		return h.bitmap(names)
	}
	indices := []byte{}
	for _, name := range h.entries(names) {
		index := slices.Index(h.Cluster.names, name)
		indices = binary.LittleEndian.AppendUint32(indices, uint32(index))
	}
	return &pb.Candidates{Indices: indices}
}

// entries gives the node of each entry of an answer's vectors.
func (h *Host) entries(asked []string) []string {
	if !h.Listed || asked == nil {
		return h.Cluster.names
	}
	listed := []string{}
	for _, name := range h.Cluster.names {
		if slices.Contains(asked, name) {
			listed = append(listed, name)
		}
	}
	return listed
}

func (h *Host) bitmap(names []string) *pb.Candidates {
	if names == nil {
		return nil
	}
	bitmap := make([]byte, (len(h.Cluster.names)+7)/8)
	for i, name := range h.Cluster.names {
		if slices.Contains(names, name) {
			bitmap[i/8] |= 1 << (i % 8)
		}
	}
	return &pb.Candidates{Bitmap: bitmap}
}

// named gives the nodes of a bitmap.
func (h *Host) named(bitmap []byte) []string {
	h.t.Helper()
	if wanted := (len(h.Cluster.names) + 7) / 8; len(bitmap) != wanted {
		h.t.Fatalf("a bitmap of %d bytes, %d are expected", len(bitmap), wanted)
	}
	var names []string
	for i, name := range h.Cluster.names {
		if bitmap[i/8]>>(i%8)&1 == 1 {
			names = append(names, name)
		}
	}
	return names
}

func (h *Host) group(name string, pods []*corev1.Pod) *pb.PodGroup {
	h.t.Helper()
	if len(pods) == 0 {
		h.t.Fatalf("group %s has no pods", name)
	}
	group := &pb.PodGroup{Namespace: pods[0].Namespace, Name: name}
	for _, pod := range pods {
		ref := h.call(pod).Pod
		ref.Object = nil
		group.Pods = append(group.Pods, ref)
	}
	return group
}

func (h *Host) proposal(name string, pods []*corev1.Pod, nodes map[string]string) *pb.ProposedPlacement {
	h.t.Helper()
	if len(nodes) == 0 {
		h.t.Fatalf("%s has no pods: name a node for one of the group's at least", name)
	}
	for pod, node := range nodes {
		if !slices.ContainsFunc(pods, func(each *corev1.Pod) bool { return each.Name == pod }) {
			h.t.Fatalf("%s: pod %s is not in the group", name, pod)
		}
		if !slices.Contains(h.Cluster.names, node) {
			h.t.Fatalf("%s: node %s does not exist", name, node)
		}
	}
	used := h.bitmap(slices.Collect(maps.Values(nodes)))
	proposed := &pb.ProposedPlacement{Placement: &pb.Placement{Name: name, Bitmap: used.Bitmap}}
	for i, pod := range pods {
		if node, placed := nodes[pod.Name]; placed {
			proposed.PodIndices = append(proposed.PodIndices, uint32(i))
			proposed.NodeIndices = append(proposed.NodeIndices, uint32(slices.Index(h.Cluster.names, node)))
		}
	}
	return proposed
}

func (h *Host) verdict(response *pb.FilterResponse, asked []string) Verdict {
	h.t.Helper()
	if response.Generation != h.Cluster.Generation {
		h.t.Fatalf("answered for generation %d, asked for %d", response.Generation, h.Cluster.Generation)
	}
	names := h.Cluster.names
	if asked != nil {
		names = asked
	}
	verdict := Verdict{statusOf(response.Status), map[string]berth.Reason{}, slices.Clone(names)}
	if (response.Verdicts != nil) != (verdict.Status.Code == berth.Success) {
		h.t.Fatalf("verdicts go with a success and nothing else: %v", response)
	}
	each, entries := response.Verdicts.GetEach(), h.entries(asked)
	if each != nil && len(each) != len(entries) {
		h.t.Fatalf("%d codes for %d nodes", len(each), len(entries))
	}
	for i, code := range each {
		if code > 0 {
			reason := response.Verdicts.Reasons[code-1]
			verdict.Rejected[entries[i]] = berth.Reason{Text: reason.Text, Code: berth.Code(reason.Code)}
		}
	}
	return verdict
}

func (h *Host) scores(response *pb.ScoreResponse, asked []string) map[string]int64 {
	h.t.Helper()
	if response.Status.Code == pb.Code_CODE_SKIP {
		return nil
	}
	h.succeeded("Score", response.Status)
	entries := h.entries(asked)
	points := unpackScores(response.Scores, len(entries))
	if len(points) != len(entries) {
		h.t.Fatalf("%d scores for %d nodes", len(points), len(entries))
	}
	scores := map[string]int64{}
	for i, name := range entries {
		if asked == nil || slices.Contains(asked, name) {
			scores[name] = points[i]
		}
	}
	return scores
}

func unpackScores(message *pb.Scores, count int) []int64 {
	var points []int64
	switch values := message.GetValues().(type) {
	case *pb.Scores_Uint8:
		for _, value := range values.Uint8 {
			points = append(points, int64(value))
		}
	case *pb.Scores_Int32:
		for part := range slices.Chunk(values.Int32, 4) {
			points = append(points, int64(int32(binary.LittleEndian.Uint32(part))))
		}
	case *pb.Scores_Int64:
		for part := range slices.Chunk(values.Int64, 8) {
			points = append(points, int64(binary.LittleEndian.Uint64(part)))
		}
	case *pb.Scores_All:
		points = slices.Repeat([]int64{values.All}, count)
	}
	return points
}

// noError ends the test where the plugin failed, with its text.
func (h *Host) noError(what string, status *pb.Status) {
	h.t.Helper()
	if status.GetCode() == pb.Code_CODE_ERROR {
		h.t.Fatalf("%s answered ERROR: %s", what, strings.Join(status.Reasons, "; "))
	}
}

// sameAlone ends the test where a node has another answer alone than among all
// that were asked about.
func (h *Host) sameAlone(name string, together, alone any) {
	h.t.Helper()
	if together != alone {
		h.t.Fatalf("%s asked about alone: %v, and together with the others: %v", name, alone, together)
	}
}

// alone are the nodes that are asked about one by one, of all that were asked about.
func (h *Host) alone(names []string) []string {
	if h.Once {
		return nil
	}
	return names[:min(len(names), maxAlone)]
}

func (h *Host) succeeded(what string, status *pb.Status) {
	h.t.Helper()
	if status.GetCode() != pb.Code_CODE_SUCCESS {
		h.t.Fatalf("%s: %v", what, status)
	}
}

func statusOf(message *pb.Status) berth.Status {
	return berth.Status{Code: berth.Code(message.GetCode()), Reasons: message.GetReasons()}
}
