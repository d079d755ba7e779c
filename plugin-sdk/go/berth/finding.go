package berth

import (
	"go.opentelemetry.io/otel/attribute"
	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// The calls that look for a node: from the gate of the queue to making room.

func (c *call) preEnqueue(*pb.PreEnqueueRequest) (*pb.PreEnqueueResponse, error) {
	pod, err := c.session.pod(c.head.Pod)
	if err != nil {
		return nil, err
	}
	if c.plugin.PreEnqueue == nil {
		return &pb.PreEnqueueResponse{Status: success()}, nil
	}
	status := c.verdict("PreEnqueue", func() *Status { return c.plugin.PreEnqueue(c.ctx, pod) },
		Unschedulable, UnschedulableAndUnresolvable, Pending)
	return &pb.PreEnqueueResponse{Status: status}, nil
}

func (c *call) filter(request *pb.FilterRequest) (*pb.FilterResponse, error) {
	pod, err := c.asked()
	if err != nil {
		return nil, err
	}
	response, _, err := c.filtered(pod, request.Candidates)
	return response, err
}

func (c *call) score(request *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	pod, err := c.asked()
	if err != nil {
		return nil, err
	}
	asked, err := c.session.candidates(c.head, request.Candidates)
	if err != nil {
		return nil, err
	}
	return c.scored(pod, asked), nil
}

func (c *call) filterScore(request *pb.FilterScoreRequest) (*pb.FilterScoreResponse, error) {
	pod, err := c.asked()
	if err != nil {
		return nil, err
	}
	response, passing, err := c.filtered(pod, request.Candidates)
	if err != nil {
		return nil, err
	}
	if passing == nil || passing.count() == 0 {
		return &pb.FilterScoreResponse{Filter: response}, nil
	}
	return &pb.FilterScoreResponse{Filter: response, Score: c.scored(pod, passing)}, nil
}

// filtered gives the reply and the nodes that passed, nil if none is left to score.
func (c *call) filtered(pod *corev1.Pod, message *pb.Candidates) (*pb.FilterResponse, *candidates, error) {
	status := c.preFiltered(pod)
	asked, err := c.session.candidates(c.head, message)
	if err != nil {
		return nil, nil, err
	}
	response := &pb.FilterResponse{Generation: c.session.mirror.generation, Status: status}
	switch status.Code {
	case pb.Code_CODE_SUCCESS:
	case pb.Code_CODE_SKIP:
		return response, asked, nil
	default:
		return response, nil, nil
	}
	verdicts, err := nodeVerdicts(c.plugin, pod, asked)
	var passing *candidates
	var rejected int
	if err == nil {
		response.Verdicts, passing, rejected, err = packVerdicts(verdicts, asked)
	}
	if err != nil {
		response.Status = c.failure(err)
		return response, nil, nil
	}
	c.count(asked.count(), rejected)
	return response, passing, nil
}

func (c *call) preFiltered(pod *corev1.Pod) *pb.Status {
	if c.plugin.PreFilter == nil {
		return success()
	}
	return c.verdict("PreFilter", func() *Status { return c.plugin.PreFilter(c.ctx, pod) },
		Skip, Unschedulable, UnschedulableAndUnresolvable, Pending)
}

// nodeVerdicts gives a code for each entry by whichever form the author chose.
func nodeVerdicts(plugin *Plugin, pod *corev1.Pod, asked *candidates) (verdicts Verdicts, err error) {
	switch {
	case plugin.FilterNodes != nil:
		err = guarded("FilterNodes", func() { verdicts = plugin.FilterNodes(pod, asked.nodes()) })
		if err == nil {
			verdicts.Codes, err = picked(asked, verdicts.Codes, "codes")
		}
	case plugin.Filter != nil:
		err = guarded("Filter", func() { verdicts = filterEach(plugin.Filter, pod, asked) })
	default:
		verdicts.Codes = make([]uint8, asked.entries())
	}
	return verdicts, err
}

// scored gives the scores by whichever form the author chose.
func (c *call) scored(pod *corev1.Pod, asked *candidates) *pb.ScoreResponse {
	response := &pb.ScoreResponse{Generation: c.session.mirror.generation, Status: success()}
	points, err := c.nodePoints(pod, asked)
	if err == nil && points == nil && len(c.session.mirror.nodes) > 0 {
		response.Status = &pb.Status{Code: pb.Code_CODE_SKIP}
		return response
	}
	if err == nil {
		response.Scores, err = packPoints(points, c.plugin.Normalization, asked.entries(), asked.asked)
	}
	if err != nil {
		response.Status = c.failure(err)
	}
	return response
}

// nodePoints gives a score for each entry, nil for no opinion.
func (c *call) nodePoints(pod *corev1.Pod, asked *candidates) (points []int64, err error) {
	switch plugin := c.plugin; {
	case plugin.ScoreNodes != nil:
		err = guarded("ScoreNodes", func() { points = plugin.ScoreNodes(pod, asked.nodes()) })
		if err == nil && points != nil {
			points, err = picked(asked, points, "scores")
		}
	case plugin.Score != nil:
		err = guarded("Score", func() { points = scoreEach(&c.session.points, plugin.Score, pod, asked) })
	}
	return points, err
}

func (c *call) postFilter(request *pb.PostFilterRequest) (*pb.PostFilterResponse, error) {
	pod, nodes, err := c.askedOf(nil)
	if err != nil {
		return nil, err
	}
	verdicts, err := unpackVerdicts(request.Verdicts, nodes.Len())
	if err != nil {
		return nil, err
	}
	if c.plugin.PostFilter == nil {
		text := c.plugin.Name + " makes no room"
		return &pb.PostFilterResponse{Status: &pb.Status{Code: pb.Code_CODE_UNSCHEDULABLE, Reasons: []string{text}}}, nil
	}
	var nomination *Nomination
	response := &pb.PostFilterResponse{}
	response.Status = c.verdict("PostFilter", func() (status *Status) {
		nomination, status = c.plugin.PostFilter(c.ctx, pod, nodes, verdicts)
		return status
	}, Unschedulable, UnschedulableAndUnresolvable)
	if nomination == nil || response.Status.Code != pb.Code_CODE_SUCCESS {
		return response, nil
	}
	if nomination.NodeName != "" || nomination.Clear {
		response.NominatedNodeName = &nomination.NodeName
	}
	response.VictimUids = nomination.VictimUIDs
	return response, nil
}

func (c *call) count(asked, rejected int) {
	c.session.meter.verdicts(asked-rejected, rejected)
	if c.span.IsRecording() {
		c.span.SetAttributes(
			attribute.Int("berth.nodes.passed", asked-rejected),
			attribute.Int("berth.nodes.rejected", rejected),
		)
	}
}

func success() *pb.Status { return &pb.Status{Code: pb.Code_CODE_SUCCESS} }
