package berth

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

type stage string

const (
	waitingForBegin stage = "WAITING"
	transferring    stage = "TRANSFERRING"
	following       stage = "FOLLOWING"
)

// syncStream is one Sync stream's place in the protocol. The stream opened last
// is the one that counts; older ones end.
//
//	waiting for Begin --begin, full--> transferring --commit--> following
//	       |   ^                                                 |  ^
//	       |   +------------------- Nack ------------------------+  |
//	       +-----------------------begin, resume--------------------+
type syncStream struct {
	session *session
	stage   stage
	epoch   string
	steps   []step
	// timed says whether the host has said the time on this stream.
	timed      bool
	superseded chan struct{}
}

type stateService struct {
	pb.UnimplementedStateServiceServer
	server *Server
}

// Sync says what is held, then follows, until a newer stream takes over.
func (s *stateService) Sync(stream grpc.BidiStreamingServer[pb.SyncRequest, pb.SyncResponse]) error {
	ctx := stream.Context()
	opened, held, err := s.server.session.open(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.SyncResponse{Body: &pb.SyncResponse_Held{Held: held}}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- opened.follow(stream) }()
	select {
	case err := <-ended:
		return err
	case <-opened.superseded:
		return status.Error(codes.Aborted, "a newer Sync stream was opened")
	case <-s.server.stopping:
		return status.Error(codes.Unavailable, "the plugin is stopping")
	}
}

// open makes a new stream the one that counts.
func (s *session) open(ctx context.Context) (*syncStream, *pb.Held, error) {
	here := s.line.place()
	if err := here.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer here.leave()
	if s.stream != nil {
		close(s.stream.superseded)
	}
	s.stream = &syncStream{session: s, stage: waitingForBegin, superseded: make(chan struct{})}
	return s.stream, &pb.Held{Epoch: s.mirror.epoch, Generation: s.mirror.generation}, nil
}

func (t *syncStream) follow(stream grpc.BidiStreamingServer[pb.SyncRequest, pb.SyncResponse]) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		response, current, err := t.answer(stream.Context(), request)
		if err != nil || !current {
			return err
		}
		if response == nil {
			continue
		}
		if err := stream.Send(response); err != nil {
			return err
		}
	}
}

// answer takes one message: Ack, Nack, or nil where there is nothing to say.
// What can be decoded outside the line is.
func (t *syncStream) answer(
	ctx context.Context, request *pb.SyncRequest,
) (response *pb.SyncResponse, current bool, err error) {
	steps, problem := []step(nil), (*syncError)(nil)
	if chunk := request.GetChunk(); chunk != nil && t.stage == transferring {
		steps, problem = stepsOf(chunk.Changes, decodePod)
	}
	here := t.session.line.place()
	if err := here.enter(ctx); err != nil {
		return nil, false, err
	}
	defer here.leave()
	if t.session.stream != t {
		return nil, false, nil
	}
	before := t.session.mirror.generation
	if problem == nil {
		response, problem = t.take(request, steps)
	}
	if problem != nil {
		response = t.refuse(request, problem)
	}
	if t.session.mirror.generation != before {
		t.session.announce()
	}
	return response, true, nil
}

func (t *syncStream) take(request *pb.SyncRequest, steps []step) (*pb.SyncResponse, *syncError) {
	switch body := request.GetBody().(type) {
	case *pb.SyncRequest_Time:
		if t.session.plugin.Clock != nil {
			return t.time(body.Time), nil
		}
	case *pb.SyncRequest_Begin:
		return t.begin(body.Begin)
	case *pb.SyncRequest_Chunk:
		if t.stage == transferring {
			t.steps = append(t.steps, steps...)
			return nil, nil
		}
	case *pb.SyncRequest_Commit:
		if t.stage == transferring {
			return t.commit(body.Commit)
		}
	case *pb.SyncRequest_Delta:
		if t.stage == following {
			return t.delta(body.Delta)
		}
	}
	return nil, outOfSync(pb.NackReason_NACK_REASON_OUT_OF_ORDER, "%T does not belong into the stage %s",
		request.GetBody(), t.stage)
}

func (t *syncStream) begin(begin *pb.Begin) (*pb.SyncResponse, *syncError) {
	if begin.Epoch == "" {
		return nil, outOfSync(pb.NackReason_NACK_REASON_OUT_OF_ORDER, "an epoch needs a name")
	}
	if clock := t.session.plugin.Clock; clock != nil && !t.timed {
		clock.own()
	}
	t.epoch, t.steps = begin.Epoch, nil
	if begin.ResumeGeneration == nil {
		t.stage = transferring
		return nil, nil
	}
	held, from := t.session.mirror, *begin.ResumeGeneration
	if begin.Epoch != held.epoch || from <= 0 || from > held.generation {
		return nil, outOfSync(pb.NackReason_NACK_REASON_CANNOT_RESUME, "%d of epoch %q is held",
			held.generation, held.epoch)
	}
	t.stage = following
	return t.ack(), nil
}

func (t *syncStream) time(said *pb.Time) *pb.SyncResponse {
	t.timed = true
	plugin := t.session.plugin
	wake := plugin.Clock.reach(said.UnixMicros)
	reached := &pb.TimeReached{
		UnixMicros: said.UnixMicros, WakeAtUnixMicros: wake, LastRequeue: plugin.Requeue.last(),
	}
	return &pb.SyncResponse{Body: &pb.SyncResponse_TimeReached{TimeReached: reached}}
}

func (t *syncStream) commit(commit *pb.Commit) (*pb.SyncResponse, *syncError) {
	if commit.Generation < 1 {
		return nil, outOfSync(pb.NackReason_NACK_REASON_OUT_OF_ORDER, "generations start at 1")
	}
	if err := t.session.mirror.replace(t.epoch, commit, t.steps); err != nil {
		return nil, err
	}
	t.stage, t.steps = following, nil
	return t.ack(), nil
}

func (t *syncStream) delta(delta *pb.Delta) (*pb.SyncResponse, *syncError) {
	if err := t.session.mirror.follow(delta, t.session.steps); err != nil {
		return nil, err
	}
	return t.ack(), nil
}

func (t *syncStream) ack() *pb.SyncResponse {
	return &pb.SyncResponse{Body: &pb.SyncResponse_Ack{Ack: &pb.Ack{Generation: t.session.mirror.generation}}}
}

// refuse holds nothing from now on, and says why.
func (t *syncStream) refuse(request *pb.SyncRequest, problem *syncError) *pb.SyncResponse {
	slog.Warn("state refused", "reason", problem.reason, "error", problem.text)
	t.session.meter.refused(problem.reason)
	t.session.mirror.drop()
	t.stage, t.steps = waitingForBegin, nil
	var generation int64
	switch body := request.GetBody().(type) {
	case *pb.SyncRequest_Commit:
		generation = body.Commit.Generation
	case *pb.SyncRequest_Delta:
		generation = body.Delta.Generation
	}
	nack := &pb.Nack{Generation: generation, Reason: problem.reason, Message: problem.text}
	return &pb.SyncResponse{Body: &pb.SyncResponse_Nack{Nack: nack}}
}
