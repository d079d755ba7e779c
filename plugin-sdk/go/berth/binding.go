package berth

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// The calls after a node was chosen: from the reservation to the attempt's end.

func (c *call) reserve(request *pb.ReserveRequest) (*pb.ReserveResponse, error) {
	pod, node, err := c.chosen(request.NodeName)
	if err != nil {
		return nil, err
	}
	if node == nil {
		return &pb.ReserveResponse{Status: gone(request.NodeName)}, nil
	}
	response := &pb.ReserveResponse{Status: success(), SkipPreBind: c.plugin.PreBind == nil}
	if c.plugin.Reserve == nil {
		return response, nil
	}
	response.Status, response.MetadataPatch = c.patched("Reserve", func() (*MetadataPatch, *Status) {
		return c.plugin.Reserve(c.ctx, pod, node)
	})
	return response, nil
}

func (c *call) unreserve(request *pb.UnreserveRequest) (*pb.UnreserveResponse, error) {
	if c.plugin.Unreserve != nil {
		c.tell("Unreserve", func() { c.plugin.Unreserve(c.ctx, c.key(), request.NodeName) })
	}
	return &pb.UnreserveResponse{}, nil
}

func (c *call) permit(request *pb.PermitRequest) (*pb.PermitResponse, error) {
	pod, node, err := c.chosen(request.NodeName)
	if err != nil {
		return nil, err
	}
	if node == nil {
		return &pb.PermitResponse{Status: gone(request.NodeName)}, nil
	}
	if c.plugin.Permit == nil {
		return &pb.PermitResponse{Status: success()}, nil
	}
	var timeout time.Duration
	response := &pb.PermitResponse{}
	response.Status = c.verdict("Permit", func() (status *Status) {
		timeout, status = c.plugin.Permit(c.ctx, pod, node)
		return status
	}, Unschedulable, UnschedulableAndUnresolvable)
	if timeout > 0 && response.Status.Code == pb.Code_CODE_SUCCESS {
		response.Status = &pb.Status{Code: pb.Code(Wait)}
		response.Timeout = durationpb.New(timeout)
	}
	return response, nil
}

func (c *call) preBind(request *pb.PreBindRequest) (*pb.PreBindResponse, error) {
	pod, node, err := c.chosen(request.NodeName)
	if err != nil {
		return nil, err
	}
	if node == nil {
		return &pb.PreBindResponse{Status: gone(request.NodeName)}, nil
	}
	response := &pb.PreBindResponse{Status: success()}
	if c.plugin.PreBind == nil {
		return response, nil
	}
	response.Status, response.MetadataPatch = c.patched("PreBind", func() (*MetadataPatch, *Status) {
		return c.plugin.PreBind(c.ctx, pod, node)
	})
	return response, nil
}

// patched calls a function that may ask for metadata, which counts with a success only.
func (c *call) patched(name string, function func() (*MetadataPatch, *Status)) (*pb.Status, []byte) {
	var patch *MetadataPatch
	status := c.verdict(name, func() (status *Status) {
		patch, status = function()
		return status
	}, Unschedulable, UnschedulableAndUnresolvable, Pending)
	if patch == nil || status.Code != pb.Code_CODE_SUCCESS {
		return status, nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return c.failure(err), nil
	}
	return status, data
}

func (c *call) bind(request *pb.BindRequest) (*pb.BindResponse, error) {
	pod, node, err := c.chosen(request.NodeName)
	if err != nil {
		return nil, err
	}
	if c.plugin.Bind == nil {
		return &pb.BindResponse{Status: &pb.Status{Code: pb.Code_CODE_SKIP}}, nil
	}
	status := c.verdict("Bind", func() *Status {
		if node == nil {
			return Errorf("node %s is gone", request.NodeName)
		}
		return c.plugin.Bind(c.ctx, pod, node, request.Annotations)
	}, Skip)
	return &pb.BindResponse{Status: status}, nil
}

func (c *call) postBind(request *pb.PostBindRequest) (*pb.PostBindResponse, error) {
	if c.plugin.PostBind != nil {
		c.tell("PostBind", func() { c.plugin.PostBind(c.ctx, c.key(), request.NodeName) })
	}
	return &pb.PostBindResponse{}, nil
}

// cycleDone says what became of the attempt; a pod that will not be asked about
// again is forgotten.
func (c *call) cycleDone(request *pb.CycleDoneRequest) (*pb.CycleDoneResponse, error) {
	outcome := CycleOutcome(request.Outcome)
	if outcome < OutcomeBound || outcome > OutcomeAborted {
		return nil, invalid("outcome %d is none", request.Outcome)
	}
	if c.plugin.CycleDone != nil {
		ended := Outcome{outcome, request.GetNodeName(), request.RejectedByPlugin}
		c.tell("CycleDone", func() { c.plugin.CycleDone(c.ctx, c.key(), ended) })
	}
	if outcome == OutcomeBound || outcome == OutcomeAborted {
		c.session.pods.forget(c.head.Pod.Uid)
	}
	return &pb.CycleDoneResponse{}, nil
}
