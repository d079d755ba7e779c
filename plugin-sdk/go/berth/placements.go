package berth

import (
	"context"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// placementService answers calls about the placements of pod groups.
type placementService struct {
	pb.UnimplementedPlacementServiceServer
	server *Server
}

func (s *placementService) GeneratePlacements(
	ctx context.Context, q *pb.GeneratePlacementsRequest,
) (*pb.GeneratePlacementsResponse, error) {
	return unary(ctx, s.server, "GeneratePlacements", q, (*call).generatePlacements)
}

func (s *placementService) ScorePlacements(
	ctx context.Context, q *pb.ScorePlacementsRequest,
) (*pb.ScorePlacementsResponse, error) {
	return unary(ctx, s.server, "ScorePlacements", q, (*call).scorePlacements)
}

// PodGroup is the group that placements are for, and its pods that have no node;
// those that have one are among the pods of [Nodes].
type PodGroup struct {
	Namespace string
	Name      string
	Pods      []PodKey
}

// Placement is a set of nodes that a pod group may go to as a whole. Nodes says
// of each node, by index, whether it is one of them; users see the name.
type Placement struct {
	Name  string
	Nodes []bool
}

// ProposedPlacement is a placement in which a pod group fits.
type ProposedPlacement struct {
	Placement
	Assignments []Assignment
}

// Assignment is a pod of the group, and the index of the node that it would go to.
type Assignment struct {
	Pod  PodKey
	Node int
}

func (c *call) generatePlacements(request *pb.GeneratePlacementsRequest) (*pb.GeneratePlacementsResponse, error) {
	pod, nodes, err := c.askedOf(request.Candidates)
	if err != nil {
		return nil, err
	}
	response := &pb.GeneratePlacementsResponse{Generation: c.session.mirror.generation}
	if c.plugin.GeneratePlacements == nil {
		response.Status = &pb.Status{Code: pb.Code_CODE_SKIP}
		return response, nil
	}
	var placements []Placement
	response.Status = c.verdict("GeneratePlacements", func() (status *Status) {
		placements, status = c.plugin.GeneratePlacements(groupOf(request.Group), pod, nodes)
		return status
	}, Skip, Unschedulable, UnschedulableAndUnresolvable)
	if response.Status.Code != pb.Code_CODE_SUCCESS {
		return response, nil
	}
	if response.Placements, err = packPlacements(placements, nodes); err != nil {
		response.Status = c.failure(err)
	}
	return response, nil
}

func (c *call) scorePlacements(request *pb.ScorePlacementsRequest) (*pb.ScorePlacementsResponse, error) {
	pod, nodes, err := c.askedOf(nil)
	if err != nil {
		return nil, err
	}
	group := groupOf(request.Group)
	proposed := make([]ProposedPlacement, len(request.Proposed))
	for i, each := range request.Proposed {
		if proposed[i], err = proposedOf(each, group, nodes.Len()); err != nil {
			return nil, err
		}
	}
	response := &pb.ScorePlacementsResponse{Generation: c.session.mirror.generation, Status: success()}
	var points []int64
	if c.plugin.ScorePlacements != nil {
		err = guarded("ScorePlacements", func() { points = c.plugin.ScorePlacements(group, pod, nodes, proposed) })
	}
	if err == nil && points == nil {
		response.Status = &pb.Status{Code: pb.Code_CODE_SKIP}
		return response, nil
	}
	if err == nil {
		response.Scores, err = packPoints(points, c.plugin.Normalization, len(proposed), nil)
	}
	if err != nil {
		response.Status = c.failure(err)
	}
	return response, nil
}

// packPlacements makes the messages, without nodes that were not asked about; a
// placement that has no node then is none.
func packPlacements(placements []Placement, nodes *Nodes) ([]*pb.Placement, error) {
	var packed []*pb.Placement
	names := map[string]bool{}
	for _, each := range placements {
		switch {
		case each.Name == "" || len(each.Nodes) != nodes.Len():
			return nil, broken("placement %q: expected a name and %d nodes, got %d", each.Name, nodes.Len(), len(each.Nodes))
		case names[each.Name]:
			return nil, broken("placement %q: two have this name", each.Name)
		}
		names[each.Name] = true
		bitmap := make([]byte, (len(each.Nodes)+7)/8)
		some := false
		for index, chosen := range each.Nodes {
			if chosen && nodes.IsAsked(index) {
				bitmap[index>>3] |= 1 << (index & 7)
				some = true
			}
		}
		if some {
			packed = append(packed, &pb.Placement{Name: each.Name, Bitmap: bitmap})
		}
	}
	return packed, nil
}

func groupOf(message *pb.PodGroup) *PodGroup {
	group := &PodGroup{Namespace: message.GetNamespace(), Name: message.GetName()}
	for _, ref := range message.GetPods() {
		group.Pods = append(group.Pods, attemptOf(ref))
	}
	return group
}

// proposedOf reads a proposal about this group and so many nodes.
func proposedOf(message *pb.ProposedPlacement, group *PodGroup, count int) (ProposedPlacement, error) {
	chosen, err := unpackBits(message.GetPlacement().GetBitmap(), count)
	if err != nil {
		return ProposedPlacement{}, invalid("proposed: %v", err)
	}
	if len(message.PodIndices) != len(message.NodeIndices) {
		return ProposedPlacement{}, invalid("proposed: %d pods on %d nodes", len(message.PodIndices), len(message.NodeIndices))
	}
	proposed := ProposedPlacement{Placement: Placement{message.GetPlacement().GetName(), chosen}}
	for i, pod := range message.PodIndices {
		node := message.NodeIndices[i]
		if int(pod) >= len(group.Pods) || int(node) >= count {
			return ProposedPlacement{}, invalid("proposed: pod %d of %d on node %d of %d", pod, len(group.Pods), node, count)
		}
		proposed.Assignments = append(proposed.Assignments, Assignment{group.Pods[pod], int(node)})
	}
	return proposed, nil
}
