package main

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "berth.dev/same-label/pluginv1"
)

const (
	passes = 0
	// Verdicts are rows of the reason table, counted from 1.
	otherValue = 1
	best       = 100
)

var reason = &pb.Reason{
	Code: pb.Code_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
	Text: "node(s) had another value of the pod's label",
}

// schedulingService keeps pods on nodes whose label has the value that the
// pod's own label of that key has. Nodes without the label are open to all
// pods; nodes with the pod's own value are better.
type schedulingService struct {
	pb.UnimplementedSchedulingServiceServer
	*session
}

// found is what is found for each node of a generation.
type found struct {
	generation int64
	verdicts   []byte
	scores     []byte
	// Whether a node that was asked about passes.
	anyPasses bool
}

func (s schedulingService) answer(ctx context.Context, call *pb.Call, candidates *pb.Candidates) (*found, error) {
	if err := s.enter(ctx, call); err != nil {
		return nil, err
	}
	defer s.mutex.Unlock()
	pod, err := podLabels(ctx, call.Pod)
	if err != nil {
		return nil, err
	}
	count := len(s.held.nodes)
	if candidates != nil && len(candidates.Bitmap) != (count+7)/8 {
		return nil, status.Error(codes.InvalidArgument, "a bitmap for another number of nodes")
	}
	label := s.labels[call.Profile]
	wanted, labelled := pod[label]
	answer := &found{s.held.generation, make([]byte, count), make([]byte, count), false}
	for i, node := range s.held.nodes {
		if value, there := node.labels[label]; there && labelled && value == wanted {
			answer.scores[i] = best
		} else if there {
			answer.verdicts[i] = otherValue
		}
		asked := candidates == nil || candidates.Bitmap[i/8]>>(i%8)&1 == 1
		answer.anyPasses = answer.anyPasses || asked && answer.verdicts[i] == passes
	}
	return answer, nil
}

// podLabels reads the pod. None is kept: the host sends it again where a call
// came without it.
func podLabels(ctx context.Context, pod *pb.PodRef) (map[string]string, error) {
	if pod.GetObject() == nil {
		return nil, precondition(ctx, "POD_UNKNOWN", "the pod's object is needed")
	}
	labels, err := labelsOf(pod.Object)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "the pod: %v", err)
	}
	return labels, nil
}

func (s schedulingService) Filter(ctx context.Context, request *pb.FilterRequest) (*pb.FilterResponse, error) {
	answer, err := s.answer(ctx, request.Call, request.Candidates)
	if err != nil {
		return nil, err
	}
	return answer.filter(), nil
}

func (s schedulingService) Score(ctx context.Context, request *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	answer, err := s.answer(ctx, request.Call, request.Candidates)
	if err != nil {
		return nil, err
	}
	return answer.score(), nil
}

func (s schedulingService) FilterScore(ctx context.Context, request *pb.FilterScoreRequest) (*pb.FilterScoreResponse, error) {
	answer, err := s.answer(ctx, request.Call, request.Candidates)
	if err != nil {
		return nil, err
	}
	response := &pb.FilterScoreResponse{Filter: answer.filter()}
	if answer.anyPasses {
		response.Score = answer.score()
	}
	return response, nil
}

func (f *found) filter() *pb.FilterResponse {
	return &pb.FilterResponse{
		Generation: f.generation,
		Status:     &pb.Status{Code: pb.Code_CODE_SUCCESS},
		Verdicts: &pb.Verdicts{
			Codes:   &pb.Verdicts_Each{Each: f.verdicts},
			Reasons: []*pb.Reason{reason},
		},
	}
}

func (f *found) score() *pb.ScoreResponse {
	return &pb.ScoreResponse{
		Generation: f.generation,
		Status:     &pb.Status{Code: pb.Code_CODE_SUCCESS},
		Scores: &pb.Scores{
			Values:        &pb.Scores_Uint8{Uint8: f.scores},
			Normalization: pb.Normalization_NORMALIZATION_NONE,
		},
	}
}
