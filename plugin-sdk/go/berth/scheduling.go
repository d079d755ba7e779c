package berth

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// schedulingService answers calls of their own, and calls of a conversation.
type schedulingService struct {
	pb.UnimplementedSchedulingServiceServer
	server *Server
}

func unary[Q headed, R any](
	ctx context.Context, server *Server, name string, request Q, function func(*call, Q) (R, error),
) (R, error) {
	here := server.session.line.place()
	response, err := answered(ctx, server, here, name, metadataCarrier(ctx), request, function)
	return response, asStatus(ctx, err)
}

func (s *schedulingService) PreEnqueue(ctx context.Context, q *pb.PreEnqueueRequest) (*pb.PreEnqueueResponse, error) {
	return unary(ctx, s.server, "PreEnqueue", q, (*call).preEnqueue)
}

func (s *schedulingService) Filter(ctx context.Context, q *pb.FilterRequest) (*pb.FilterResponse, error) {
	return unary(ctx, s.server, "Filter", q, (*call).filter)
}

func (s *schedulingService) Score(ctx context.Context, q *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	return unary(ctx, s.server, "Score", q, (*call).score)
}

func (s *schedulingService) FilterScore(ctx context.Context, q *pb.FilterScoreRequest) (*pb.FilterScoreResponse, error) {
	return unary(ctx, s.server, "FilterScore", q, (*call).filterScore)
}

func (s *schedulingService) FilterOverlays(ctx context.Context, q *pb.FilterOverlaysRequest) (*pb.FilterOverlaysResponse, error) {
	return unary(ctx, s.server, "FilterOverlays", q, (*call).filterOverlays)
}

func (s *schedulingService) PostFilter(ctx context.Context, q *pb.PostFilterRequest) (*pb.PostFilterResponse, error) {
	return unary(ctx, s.server, "PostFilter", q, (*call).postFilter)
}

func (s *schedulingService) Reserve(ctx context.Context, q *pb.ReserveRequest) (*pb.ReserveResponse, error) {
	return unary(ctx, s.server, "Reserve", q, (*call).reserve)
}

func (s *schedulingService) Unreserve(ctx context.Context, q *pb.UnreserveRequest) (*pb.UnreserveResponse, error) {
	return unary(ctx, s.server, "Unreserve", q, (*call).unreserve)
}

func (s *schedulingService) Permit(ctx context.Context, q *pb.PermitRequest) (*pb.PermitResponse, error) {
	return unary(ctx, s.server, "Permit", q, (*call).permit)
}

func (s *schedulingService) PreBind(ctx context.Context, q *pb.PreBindRequest) (*pb.PreBindResponse, error) {
	return unary(ctx, s.server, "PreBind", q, (*call).preBind)
}

func (s *schedulingService) Bind(ctx context.Context, q *pb.BindRequest) (*pb.BindResponse, error) {
	return unary(ctx, s.server, "Bind", q, (*call).bind)
}

func (s *schedulingService) PostBind(ctx context.Context, q *pb.PostBindRequest) (*pb.PostBindResponse, error) {
	return unary(ctx, s.server, "PostBind", q, (*call).postBind)
}

func (s *schedulingService) CycleDone(ctx context.Context, q *pb.CycleDoneRequest) (*pb.CycleDoneResponse, error) {
	return unary(ctx, s.server, "CycleDone", q, (*call).cycleDone)
}

// Converse answers calls side by side, each as soon as it has its answer; the
// author's functions see them in the order of the stream.
func (s *schedulingService) Converse(stream grpc.BidiStreamingServer[pb.ConverseRequest, pb.ConverseResponse]) error {
	ended := make(chan error, 1)
	talk := &conversation{server: s.server, stream: stream}
	go func() { ended <- talk.listen() }()
	var err error
	select {
	case err = <-ended:
	case <-s.server.stopping:
		err = status.Error(codes.Unavailable, "the plugin is stopping")
	}
	talk.running.Wait()
	return err
}

// conversation is one Converse stream.
type conversation struct {
	server  *Server
	stream  grpc.BidiStreamingServer[pb.ConverseRequest, pb.ConverseResponse]
	writing sync.Mutex
	running calls
}

func (c *conversation) listen() error {
	for {
		request, err := c.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, each := range append([]*pb.ConverseRequest{request}, request.Also...) {
			if !c.running.begin() {
				return nil
			}
			here := c.server.session.line.place()
			go func() {
				defer c.running.end()
				c.reply(each, here)
			}()
		}
	}
}

func (c *conversation) reply(request *pb.ConverseRequest, here *place) {
	ctx := c.stream.Context()
	if request.Timeout != nil {
		limited, cancel := context.WithTimeout(ctx, request.Timeout.AsDuration())
		defer cancel()
		ctx = limited
	}
	response, err := c.server.conversed(ctx, request, here)
	if err != nil {
		failed := asCallError(err)
		answer := &pb.CallError{Code: int32(failed.code), Reason: failed.reason, Message: failed.text}
		response = &pb.ConverseResponse{Answer: &pb.ConverseResponse_Error{Error: answer}}
	}
	response.Id = request.Id
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.stream.Send(response) // a stream that broke is reported by Recv
}

// calls counts what runs, until the last of it is waited for; from then on nothing
// begins.
type calls struct {
	mutex  sync.Mutex
	number int
	closed bool
	none   chan struct{}
}

func (c *calls) begin() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed {
		return false
	}
	c.number++
	return true
}

func (c *calls) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.number--
	if c.closed && c.number == 0 {
		close(c.none)
	}
}

// Wait begins nothing any more, and returns when nothing runs.
func (c *calls) Wait() {
	c.mutex.Lock()
	c.closed, c.none = true, make(chan struct{})
	if c.number == 0 {
		close(c.none)
	}
	c.mutex.Unlock()
	<-c.none
}

// asStatus gives an error as gRPC's, with what the sender has to do in the trailer.
func asStatus(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	failed := asCallError(err)
	if failed.reason != "" {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(reasonKey, failed.reason))
	}
	return status.Error(failed.code, shortened(failed.text))
}

const longestError = 512

// shortened is as much of a text as trailers take: the host reads 8 KiB of them
// and nothing of longer ones; percent-encoded, this is 6.
func shortened(text string) string {
	letters := []rune(text)
	return string(letters[:min(len(letters), longestError)])
}
