package main

import (
	"errors"

	"google.golang.org/grpc"

	pb "berth.dev/same-label/pluginv1"
)

type stage int

const (
	waiting stage = iota
	transferring
	following
)

// stateService follows the host's state stream.
type stateService struct {
	pb.UnimplementedStateServiceServer
	*session
}

// stream is one Sync stream's place in the protocol.
type stream struct {
	*session
	stage   stage
	epoch   string
	changes []*pb.Change
}

func (s stateService) Sync(calls grpc.BidiStreamingServer[pb.SyncRequest, pb.SyncResponse]) error {
	s.mutex.Lock()
	s.streams++
	number := s.streams
	first := &pb.Held{Epoch: s.held.epoch, Generation: s.held.generation}
	s.mutex.Unlock()
	if err := calls.Send(&pb.SyncResponse{Body: &pb.SyncResponse_Held{Held: first}}); err != nil {
		return err
	}
	followed := &stream{session: s.session}
	for {
		request, err := calls.Recv()
		if err != nil {
			return err
		}
		answer, counts := followed.answer(request, number)
		if !counts {
			return nil
		}
		if answer == nil {
			continue
		}
		if err := calls.Send(answer); err != nil {
			return err
		}
	}
}

// answer takes one message, and returns nil where there is nothing to say, and
// false where a newer stream counts.
func (s *stream) answer(request *pb.SyncRequest, number int) (*pb.SyncResponse, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.streams != number {
		return nil, false
	}
	defer s.changed()
	acknowledged, err := s.take(request)
	var wrong *refused
	if errors.As(err, &wrong) {
		s.stage, s.session.held = waiting, held{}
		nack := &pb.Nack{Generation: generationOf(request), Reason: wrong.reason, Message: wrong.message}
		return &pb.SyncResponse{Body: &pb.SyncResponse_Nack{Nack: nack}}, true
	}
	if !acknowledged {
		return nil, true
	}
	ack := &pb.Ack{Generation: s.held.generation}
	return &pb.SyncResponse{Body: &pb.SyncResponse_Ack{Ack: ack}}, true
}

// take takes one message, and returns whether it is acknowledged.
func (s *stream) take(request *pb.SyncRequest) (bool, error) {
	switch body := request.Body.(type) {
	case *pb.SyncRequest_Begin:
		return s.begin(body.Begin)
	case *pb.SyncRequest_Chunk:
		s.changes = append(s.changes, body.Chunk.Changes...)
		return false, s.expect(transferring)
	case *pb.SyncRequest_Commit:
		if err := s.expect(transferring); err != nil {
			return false, err
		}
		state, err := transferred(s.epoch, body.Commit, s.changes)
		s.held, s.changes, s.stage = state, nil, following
		return true, err
	case *pb.SyncRequest_Delta:
		if err := s.expect(following); err != nil {
			return false, err
		}
		return true, s.held.follow(body.Delta)
	}
	return false, refuse(pb.NackReason_NACK_REASON_OUT_OF_ORDER, "an unknown message")
}

func (s *stream) begin(begin *pb.Begin) (bool, error) {
	s.epoch, s.changes = begin.Epoch, nil
	if begin.ResumeGeneration == nil {
		s.stage = transferring
		return false, nil
	}
	from := *begin.ResumeGeneration
	if s.epoch != s.held.epoch || from < 1 || from > s.held.generation {
		return false, refuse(pb.NackReason_NACK_REASON_CANNOT_RESUME, "that is not held")
	}
	s.stage = following
	return true, nil
}

func (s *stream) expect(wanted stage) error {
	if s.stage != wanted {
		return refuse(pb.NackReason_NACK_REASON_OUT_OF_ORDER, "the message does not belong here")
	}
	return nil
}

func generationOf(request *pb.SyncRequest) int64 {
	if delta := request.GetDelta(); delta != nil {
		return delta.Generation
	}
	return request.GetCommit().GetGeneration()
}
