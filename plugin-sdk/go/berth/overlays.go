package berth

import (
	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// filterOverlays asks Filter about simulated states. The pods are taken
// from the mirror and put into it, so that the author's functions and
// hooks see them like any others, and everything is put back before the answer.
func (c *call) filterOverlays(request *pb.FilterOverlaysRequest) (*pb.FilterOverlaysResponse, error) {
	pod, err := c.asked()
	if err != nil {
		return nil, err
	}
	status := c.preFiltered(pod)
	_, err = c.session.candidates(c.head, nil)
	if err != nil {
		return nil, err
	}
	for _, overlay := range request.Overlays {
		if count := len(c.session.mirror.nodes); int(overlay.NodeIndex) >= count {
			return nil, invalid("overlay of node %d: there are %d", overlay.NodeIndex, count)
		}
	}
	response := &pb.FilterOverlaysResponse{Generation: c.session.mirror.generation, Status: status}
	if status.Code != pb.Code_CODE_SUCCESS {
		return response, nil
	}
	verdicts, err := c.overlaid(pod, request.Overlays)
	if _, authors := err.(*contractError); authors {
		response.Status = c.failure(err)
		return response, nil
	}
	if err != nil {
		return nil, err
	}
	response.Verdicts = verdicts
	return response, nil
}

// overlaid answers all overlays, as many at once as touch different nodes.
func (c *call) overlaid(pod *corev1.Pod, overlays []*pb.Overlay) (*pb.Verdicts, error) {
	all := Verdicts{Codes: make([]uint8, len(overlays))}
	rows := map[Reason]uint8{}
	for rest := allOf(overlays); len(rest) > 0; {
		var round []int
		round, rest = distinctNodes(overlays, rest)
		verdicts, err := c.overlayRound(pod, overlays, round)
		if err != nil {
			return nil, err
		}
		for _, i := range round {
			if code := verdicts.Codes[overlays[i].NodeIndex]; code > 0 {
				all.Codes[i] = all.row(rows, verdicts.Reasons[code-1])
			}
		}
	}
	table, err := packReasons(all.Reasons)
	if err != nil {
		return nil, err
	}
	return &pb.Verdicts{Codes: &pb.Verdicts_Each{Each: all.Codes}, Reasons: table}, nil
}

func allOf(overlays []*pb.Overlay) []int {
	indices := make([]int, len(overlays))
	for i := range indices {
		indices[i] = i
	}
	return indices
}

func distinctNodes(overlays []*pb.Overlay, indices []int) (chosen, rest []int) {
	seen := map[uint32]bool{}
	for _, i := range indices {
		if node := overlays[i].NodeIndex; seen[node] {
			rest = append(rest, i)
		} else {
			seen[node] = true
			chosen = append(chosen, i)
		}
	}
	return chosen, rest
}

// overlayRound puts the overlays on, asks about their nodes, and takes them off.
func (c *call) overlayRound(pod *corev1.Pod, overlays []*pb.Overlay, round []int) (Verdicts, error) {
	m := c.session.mirror
	asked := make([]byte, bitBytes(len(m.nodes)))
	var undo []func() *syncError
	var failed *syncError
	for _, i := range round {
		overlay := overlays[i]
		asked[overlay.NodeIndex>>3] |= 1 << (overlay.NodeIndex & 7)
		if failed = m.putOn(overlay, &undo); failed != nil {
			break
		}
	}
	var verdicts Verdicts
	var err error
	if failed == nil {
		verdicts, err = nodeVerdicts(c.plugin, pod, &candidates{mirror: m, asked: asked})
	}
	for i := len(undo) - 1; i >= 0; i-- {
		if problem := undo[i](); problem != nil {
			m.drop()
			c.session.announce()
			return verdicts, refused(notSynced, "an overlay could not be taken off: %v", problem)
		}
	}
	if failed != nil {
		return verdicts, invalid("overlay: %v", failed)
	}
	if err == nil {
		err = codesHaveReasons(verdicts)
	}
	return verdicts, err
}

func codesHaveReasons(verdicts Verdicts) error {
	for _, code := range verdicts.Codes {
		if int(code) > len(verdicts.Reasons) {
			return broken("code %d has no reason: there are %d", code, len(verdicts.Reasons))
		}
	}
	return nil
}

// putOn applies one overlay; undo gets what takes it off.
func (m *mirror) putOn(overlay *pb.Overlay, undo *[]func() *syncError) *syncError {
	for _, uid := range overlay.RemovedPodUids {
		before := m.pods[uid]
		if before == nil || before.NodeName != m.names[overlay.NodeIndex] {
			continue
		}
		*undo = append(*undo, func() *syncError { return m.putPod(before) })
		if err := m.takePod(uid); err != nil {
			return err
		}
	}
	for _, upsert := range overlay.AddedPods {
		placed, err := placedPod(upsert, decodePod)
		if err != nil {
			return err
		}
		placed.NodeName = m.names[overlay.NodeIndex]
		before := m.pods[placed.UID]
		*undo = append(*undo, func() *syncError { return m.putBack(placed.UID, before) })
		if err := m.putPod(placed); err != nil {
			return err
		}
	}
	return nil
}

func (m *mirror) putBack(uid string, before *PlacedPod) *syncError {
	if before != nil {
		return m.putPod(before)
	}
	return m.takePod(uid)
}
