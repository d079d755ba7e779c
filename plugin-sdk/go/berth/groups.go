package berth

import (
	"context"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// groupService answers calls about pod groups as a whole.
type groupService struct {
	pb.UnimplementedGroupServiceServer
	server *Server
}

func (s *groupService) PlacementFeasible(
	ctx context.Context, q *pb.PlacementFeasibleRequest,
) (*pb.PlacementFeasibleResponse, error) {
	return unary(ctx, s.server, "PlacementFeasible", q, (*call).placementFeasible)
}

func (s *groupService) PodGroupPostFilter(
	ctx context.Context, q *pb.PodGroupPostFilterRequest,
) (*pb.PodGroupPostFilterResponse, error) {
	return unary(ctx, s.server, "PodGroupPostFilter", q, (*call).podGroupPostFilter)
}

// PlacementProgress is how far an attempt at a group has come: its pods that are
// still to be tried, and those that have a node.
type PlacementProgress struct {
	Remaining int
	Scheduled int
}

// GroupPreemption is a set of pods, by UID, without which a pod group may fit.
type GroupPreemption struct {
	VictimUIDs []string
}

func (c *call) placementFeasible(request *pb.PlacementFeasibleRequest) (*pb.PlacementFeasibleResponse, error) {
	pod, err := c.session.pod(c.head.Pod)
	if err != nil {
		return nil, err
	}
	group, response := groupOf(request.Group), &pb.PlacementFeasibleResponse{}
	for _, each := range request.Progress {
		verdict := success()
		if c.plugin.PlacementFeasible != nil {
			progress := PlacementProgress{int(each.Remaining), int(each.Scheduled)}
			verdict = c.verdict("PlacementFeasible", func() *Status {
				return c.plugin.PlacementFeasible(group, pod, progress)
			}, Wait, Unschedulable)
		}
		response.Verdicts = append(response.Verdicts, verdict)
	}
	return response, nil
}

func (c *call) podGroupPostFilter(request *pb.PodGroupPostFilterRequest) (*pb.PodGroupPostFilterResponse, error) {
	pod, nodes, err := c.askedOf(nil)
	if err != nil {
		return nil, err
	}
	verdicts, err := unpackVerdicts(request.Verdicts, nodes.Len())
	if err != nil {
		return nil, err
	}
	response := &pb.PodGroupPostFilterResponse{Generation: c.session.mirror.generation}
	if c.plugin.PodGroupPostFilter == nil {
		text := c.plugin.Name + " makes no room"
		response.Status = &pb.Status{Code: pb.Code_CODE_UNSCHEDULABLE, Reasons: []string{text}}
		return response, nil
	}
	var proposals []GroupPreemption
	response.Status = c.verdict("PodGroupPostFilter", func() (status *Status) {
		proposals, status = c.plugin.PodGroupPostFilter(groupOf(request.Group), pod, nodes, verdicts)
		return status
	}, Unschedulable, UnschedulableAndUnresolvable)
	if response.Status.Code != pb.Code_CODE_SUCCESS {
		return response, nil
	}
	for _, each := range proposals {
		if len(each.VictimUIDs) == 0 {
			response.Proposals = nil
			response.Status = c.failure(broken("a proposal evicts no pod"))
			return response, nil
		}
		response.Proposals = append(response.Proposals, &pb.GroupPreemption{VictimUids: each.VictimUIDs})
	}
	return response, nil
}
