package berth

import (
	"context"

	"google.golang.org/grpc/codes"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// conversed answers one message of a conversation.
func (s *Server) conversed(ctx context.Context, request *pb.ConverseRequest, here *place) (*pb.ConverseResponse, error) {
	carrier := carrierOver("grpc")
	if request.Traceparent != nil {
		carrier.Set("traceparent", *request.Traceparent)
	}
	response := &pb.ConverseResponse{}
	var err error
	switch asked := request.GetCall().(type) {
	case *pb.ConverseRequest_PreEnqueue:
		var answer pb.ConverseResponse_PreEnqueue
		answer.PreEnqueue, err = answered(ctx, s, here, "PreEnqueue", carrier, asked.PreEnqueue, (*call).preEnqueue)
		response.Answer = &answer
	case *pb.ConverseRequest_Filter:
		var answer pb.ConverseResponse_Filter
		answer.Filter, err = answered(ctx, s, here, "Filter", carrier, asked.Filter, (*call).filter)
		response.Answer = &answer
	case *pb.ConverseRequest_Score:
		var answer pb.ConverseResponse_Score
		answer.Score, err = answered(ctx, s, here, "Score", carrier, asked.Score, (*call).score)
		response.Answer = &answer
	case *pb.ConverseRequest_FilterScore:
		var answer pb.ConverseResponse_FilterScore
		answer.FilterScore, err = answered(ctx, s, here, "FilterScore", carrier, asked.FilterScore, (*call).filterScore)
		response.Answer = &answer
	case *pb.ConverseRequest_PostFilter:
		var answer pb.ConverseResponse_PostFilter
		answer.PostFilter, err = answered(ctx, s, here, "PostFilter", carrier, asked.PostFilter, (*call).postFilter)
		response.Answer = &answer
	case *pb.ConverseRequest_Reserve:
		var answer pb.ConverseResponse_Reserve
		answer.Reserve, err = answered(ctx, s, here, "Reserve", carrier, asked.Reserve, (*call).reserve)
		response.Answer = &answer
	case *pb.ConverseRequest_Unreserve:
		var answer pb.ConverseResponse_Unreserve
		answer.Unreserve, err = answered(ctx, s, here, "Unreserve", carrier, asked.Unreserve, (*call).unreserve)
		response.Answer = &answer
	case *pb.ConverseRequest_Permit:
		var answer pb.ConverseResponse_Permit
		answer.Permit, err = answered(ctx, s, here, "Permit", carrier, asked.Permit, (*call).permit)
		response.Answer = &answer
	case *pb.ConverseRequest_PreBind:
		var answer pb.ConverseResponse_PreBind
		answer.PreBind, err = answered(ctx, s, here, "PreBind", carrier, asked.PreBind, (*call).preBind)
		response.Answer = &answer
	case *pb.ConverseRequest_PostBind:
		var answer pb.ConverseResponse_PostBind
		answer.PostBind, err = answered(ctx, s, here, "PostBind", carrier, asked.PostBind, (*call).postBind)
		response.Answer = &answer
	case *pb.ConverseRequest_CycleDone:
		var answer pb.ConverseResponse_CycleDone
		answer.CycleDone, err = answered(ctx, s, here, "CycleDone", carrier, asked.CycleDone, (*call).cycleDone)
		response.Answer = &answer
	case *pb.ConverseRequest_Bind:
		var answer pb.ConverseResponse_Bind
		answer.Bind, err = answered(ctx, s, here, "Bind", carrier, asked.Bind, (*call).bind)
		response.Answer = &answer
	case *pb.ConverseRequest_FilterOverlays:
		var answer pb.ConverseResponse_FilterOverlays
		answer.FilterOverlays, err = answered(ctx, s, here, "FilterOverlays", carrier, asked.FilterOverlays, (*call).filterOverlays)
		response.Answer = &answer
	default:
		err = unanswered(ctx, here, &callError{codes.Unimplemented, "", "no such call"})
	}
	return response, err
}

// unanswered gives up the turn of a call that can't be answered, and says why.
func unanswered(ctx context.Context, here *place, why error) error {
	if err := here.enter(ctx); err != nil {
		return err
	}
	here.leave()
	return why
}
