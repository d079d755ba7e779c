package berthtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// PreEnqueue asks whether the pod may enter the queue.
func (h *Host) PreEnqueue(pod *corev1.Pod) berth.Status {
	h.t.Helper()
	response := ask(h, h.scheduling.PreEnqueue, &pb.PreEnqueueRequest{Call: h.call(pod)})
	return statusOf(response.Status)
}

// Filter asks about all nodes, or those named: together, and each alone as the
// scheduler does once a node has changed. It ends the test on ERROR, and where a
// node's verdict is another one alone.
func (h *Host) Filter(pod *corev1.Pod, nodeNames ...string) Verdict {
	h.t.Helper()
	h.Update()
	together := h.filter(pod, nodeNames)
	for _, name := range h.alone(together.names) {
		alone := h.filter(pod, []string{name})
		h.sameAlone(name, together.about(name), alone.about(name))
	}
	return together
}

func (h *Host) filter(pod *corev1.Pod, nodeNames []string) Verdict {
	h.t.Helper()
	request := &pb.FilterRequest{Call: h.call(pod), Candidates: h.candidates(nodeNames)}
	response := ask(h, h.scheduling.Filter, request)
	h.noError("Filter", response.Status)
	return h.verdict(response, nodeNames)
}

// FilterStatus gives what Filter says of the pod.
func (h *Host) FilterStatus(pod *corev1.Pod) berth.Status {
	h.t.Helper()
	h.Update()
	return statusOf(ask(h, h.scheduling.Filter, &pb.FilterRequest{Call: h.call(pod)}).Status)
}

// Score gives the scores of all nodes, or those named; nil for no opinion. It asks
// and ends the test as Filter does; a plugin with ScoreNeedsFeasible is not asked
// about nodes alone.
func (h *Host) Score(pod *corev1.Pod, nodeNames ...string) map[string]int64 {
	h.t.Helper()
	h.Update()
	together := h.score(pod, nodeNames)
	if h.introduced.GetCapabilities().GetScoreNeedsFeasible() {
		return together
	}
	for _, name := range h.alone(slices.Sorted(maps.Keys(together))) {
		h.sameAlone(name, together[name], h.score(pod, []string{name})[name])
	}
	return together
}

func (h *Host) score(pod *corev1.Pod, nodeNames []string) map[string]int64 {
	h.t.Helper()
	request := &pb.ScoreRequest{Call: h.call(pod), Candidates: h.candidates(nodeNames)}
	return h.scores(ask(h, h.scheduling.Score, request), nodeNames)
}

// ScoreStatus gives what Score says of the pod.
func (h *Host) ScoreStatus(pod *corev1.Pod) berth.Status {
	h.t.Helper()
	h.Update()
	return statusOf(ask(h, h.scheduling.Score, &pb.ScoreRequest{Call: h.call(pod)}).Status)
}

// FilterScore asks both in one round trip, about all nodes or those named; scores
// are those of the nodes that pass. It asks and ends the test as Filter does.
func (h *Host) FilterScore(pod *corev1.Pod, nodeNames ...string) (Verdict, map[string]int64) {
	h.t.Helper()
	h.Update()
	together, scores := h.filterScore(pod, nodeNames)
	for _, name := range h.alone(together.names) {
		alone, points := h.filterScore(pod, []string{name})
		h.sameAlone(name, together.about(name), alone.about(name))
		h.sameAlone(name, scores[name], points[name])
	}
	return together, scores
}

func (h *Host) filterScore(pod *corev1.Pod, nodeNames []string) (Verdict, map[string]int64) {
	h.t.Helper()
	request := &pb.FilterScoreRequest{Call: h.call(pod), Candidates: h.candidates(nodeNames)}
	response := ask(h, h.scheduling.FilterScore, request)
	h.noError("FilterScore", response.Filter.GetStatus())
	verdict := h.verdict(response.Filter, nodeNames)
	if response.Score == nil {
		return verdict, nil
	}
	scores := h.scores(response.Score, nodeNames)
	maps.DeleteFunc(scores, func(name string, _ int64) bool { return !verdict.Passes(name) })
	return verdict, scores
}

// FilterWithout asks about one node as it would be without those pods.
func (h *Host) FilterWithout(pod *corev1.Pod, nodeName string, removed ...*corev1.Pod) *berth.Reason {
	h.t.Helper()
	h.Update()
	overlay := &pb.Overlay{NodeIndex: uint32(slices.Index(h.Cluster.names, nodeName))}
	for _, each := range removed {
		overlay.RemovedPodUids = append(overlay.RemovedPodUids, string(each.UID))
	}
	request := &pb.FilterOverlaysRequest{Call: h.call(pod), Overlays: []*pb.Overlay{overlay}}
	response := ask(h, h.scheduling.FilterOverlays, request)
	h.succeeded("FilterOverlays", response.Status)
	code := response.Verdicts.GetEach()[0]
	if code == 0 {
		return nil
	}
	reason := response.Verdicts.Reasons[code-1]
	return &berth.Reason{Text: reason.Text, Code: berth.Code(reason.Code)}
}

// PostFilter asks for room, where every node was turned down for that reason.
func (h *Host) PostFilter(pod *corev1.Pod, reason berth.Reason) (*berth.Nomination, berth.Status) {
	h.t.Helper()
	h.Update()
	table := []*pb.Reason{{Code: pb.Code(reason.Code), Text: reason.Text}}
	verdicts := &pb.Verdicts{Codes: &pb.Verdicts_All{All: 1}, Reasons: table}
	response := ask(h, h.scheduling.PostFilter, &pb.PostFilterRequest{Call: h.call(pod), Verdicts: verdicts})
	status := statusOf(response.Status)
	if response.NominatedNodeName == nil {
		return nil, status
	}
	return &berth.Nomination{NodeName: *response.NominatedNodeName, VictimUIDs: response.VictimUids}, status
}

// Reserve reserves as the pod's present attempt.
func (h *Host) Reserve(pod *corev1.Pod, nodeName string) berth.Status {
	h.t.Helper()
	h.Update()
	response := ask(h, h.scheduling.Reserve, &pb.ReserveRequest{Call: h.call(pod), NodeName: nodeName})
	return statusOf(response.Status)
}

// Unreserve takes the attempt back; the next one has a new number.
func (h *Host) Unreserve(pod *corev1.Pod, nodeName string) {
	h.t.Helper()
	ask(h, h.scheduling.Unreserve, &pb.UnreserveRequest{Call: h.call(pod), NodeName: nodeName})
	h.NextAttempt(pod)
}

// NextAttempt gives the pod's next calls a new attempt.
func (h *Host) NextAttempt(pod *corev1.Pod) { h.attempts[string(pod.UID)] = h.attempt(pod) + 1 }

// Permit asks for leave to bind; a wait is more than 0.
func (h *Host) Permit(pod *corev1.Pod, nodeName string) (time.Duration, berth.Status) {
	h.t.Helper()
	h.Update()
	response := ask(h, h.scheduling.Permit, &pb.PermitRequest{Call: h.call(pod), NodeName: nodeName})
	if response.Status.Code == pb.Code_CODE_WAIT && response.Timeout == nil {
		h.t.Fatal("Permit says WAIT and not for how long")
	}
	return response.Timeout.AsDuration(), statusOf(response.Status)
}

// PreBind gives the metadata that the plugin wants written, empty if nothing.
func (h *Host) PreBind(pod *corev1.Pod, nodeName string) (berth.MetadataPatch, berth.Status) {
	h.t.Helper()
	h.Update()
	response := ask(h, h.scheduling.PreBind, &pb.PreBindRequest{Call: h.call(pod), NodeName: nodeName})
	var patch berth.MetadataPatch
	if response.MetadataPatch != nil {
		must(h.t, json.Unmarshal(response.MetadataPatch, &patch))
	}
	return patch, statusOf(response.Status)
}

// PostBind says that the pod was bound.
func (h *Host) PostBind(pod *corev1.Pod, nodeName string) {
	h.t.Helper()
	ask(h, h.scheduling.PostBind, &pb.PostBindRequest{Call: h.call(pod), NodeName: nodeName})
}

// CycleDone says how the attempt ended.
func (h *Host) CycleDone(pod *corev1.Pod, outcome berth.Outcome) {
	h.t.Helper()
	request := &pb.CycleDoneRequest{
		Call: h.call(pod), Outcome: pb.CycleOutcome(outcome.Result), RejectedByPlugin: outcome.Rejected,
	}
	if outcome.NodeName != "" {
		request.NodeName = &outcome.NodeName
	}
	ask(h, h.scheduling.CycleDone, request)
}

// Hints gives, for each event, whether each pod is worth another attempt.
func (h *Host) Hints(pods []*corev1.Pod, events ...berth.Event) [][]bool {
	h.t.Helper()
	request := &pb.QueueingHintsRequest{Profile: Profile}
	for _, event := range events {
		request.Events = append(request.Events, &pb.ClusterEvent{
			Resource: event.Resource, Action: pb.ActionType(event.Action), OldObject: event.Old, NewObject: event.New,
		})
	}
	for _, pod := range pods {
		request.Pods = append(request.Pods, h.call(pod).Pod)
	}
	ctx, cancel := h.context()
	defer cancel()
	response, err := h.queueing.QueueingHints(ctx, request)
	must(h.t, err)
	table := make([][]bool, len(events))
	for i, hint := range response.Hints {
		for column := range pods {
			bit := hint.GetAll()
			if bitmap := hint.GetPods(); bitmap != nil {
				bit = bitmap[column/8]>>(column%8)&1 == 1
			}
			table[i] = append(table[i], bit)
		}
	}
	return table
}

// SortKeys gives where these pods stand in the queue; left are the UIDs of pods
// that wait no more.
func (h *Host) SortKeys(pods []*corev1.Pod, anew bool, left ...string) [][]int64 {
	h.t.Helper()
	request := &pb.SortKeysRequest{Profile: Profile, LeftUids: left, Anew: anew}
	for _, pod := range pods {
		request.Pods = append(request.Pods, h.call(pod).Pod)
	}
	keys := [][]int64{}
	for _, key := range ask(h, h.queueing.SortKeys, request).Keys {
		keys = append(keys, key.Parts)
	}
	return keys
}

// GeneratePlacements gives the placements of the group of these pods, made of all
// nodes or those named.
func (h *Host) GeneratePlacements(group string, pods []*corev1.Pod, nodeNames ...string) ([]Placement, berth.Status) {
	h.t.Helper()
	h.Update()
	response := ask(h, h.placement.GeneratePlacements, &pb.GeneratePlacementsRequest{
		Group: h.group(group, pods), Call: h.call(pods[0]), Candidates: h.bitmap(nodeNames),
	})
	var placements []Placement
	for _, each := range response.Placements {
		placements = append(placements, Placement{each.Name, h.named(each.Bitmap)})
	}
	return placements, statusOf(response.Status)
}

// ScorePlacements gives the raw score of each proposal, which is node names by pod
// names; a proposal's placement are the nodes that it uses.
func (h *Host) ScorePlacements(group string, pods []*corev1.Pod, proposed ...map[string]string) ([]int64, berth.Status) {
	h.t.Helper()
	h.Update()
	request := &pb.ScorePlacementsRequest{Group: h.group(group, pods), Call: h.call(pods[0])}
	for i, nodes := range proposed {
		request.Proposed = append(request.Proposed, h.proposal(fmt.Sprintf("proposal-%d", i), pods, nodes))
	}
	response := ask(h, h.placement.ScorePlacements, request)
	return unpackScores(response.Scores, len(proposed)), statusOf(response.Status)
}

// PlacementFeasible gives the verdict on the group of these pods at each number of
// pods.
func (h *Host) PlacementFeasible(group string, pods []*corev1.Pod, progress ...berth.PlacementProgress) []berth.Status {
	h.t.Helper()
	request := &pb.PlacementFeasibleRequest{Call: h.call(pods[0]), Group: h.group(group, pods)}
	for _, each := range progress {
		request.Progress = append(request.Progress, &pb.PlacementProgress{
			Remaining: uint32(each.Remaining), Scheduled: uint32(each.Scheduled),
		})
	}
	var verdicts []berth.Status
	for _, each := range ask(h, h.groups.PlacementFeasible, request).Verdicts {
		verdicts = append(verdicts, statusOf(each))
	}
	return verdicts
}

// PodGroupPostFilter gives the UIDs of the victims of each proposal for the group
// of these pods.
func (h *Host) PodGroupPostFilter(group string, pods []*corev1.Pod) ([][]string, berth.Status) {
	h.t.Helper()
	h.Update()
	response := ask(h, h.groups.PodGroupPostFilter, &pb.PodGroupPostFilterRequest{
		Call: h.call(pods[0]), Group: h.group(group, pods),
	})
	var proposals [][]string
	for _, each := range response.Proposals {
		proposals = append(proposals, each.VictimUids)
	}
	return proposals, statusOf(response.Status)
}

func ask[Q, R any](h *Host, method func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) R {
	h.t.Helper()
	ctx, cancel := h.context()
	defer cancel()
	response, err := method(ctx, request)
	must(h.t, err)
	return response
}
