package berth_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// raw speaks the protocol message by message, where a Host would keep to it.
type raw struct {
	t          *testing.T
	ctx        context.Context
	connection *grpc.ClientConn
	identity   pb.IdentityServiceClient
	state      pb.StateServiceClient
	scheduling pb.SchedulingServiceClient
	queueing   pb.QueueingServiceClient
}

func dial(t *testing.T, plugin *berth.Plugin, options ...berth.Option) *raw {
	t.Helper()
	return dialAt(t, berthtest.Serve(t, plugin, options...))
}

func dialAt(t *testing.T, address string) *raw {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return &raw{
		t, ctx, connection, pb.NewIdentityServiceClient(connection), pb.NewStateServiceClient(connection),
		pb.NewSchedulingServiceClient(connection), pb.NewQueueingServiceClient(connection),
	}
}

func (r *raw) configure() {
	r.t.Helper()
	request := &pb.ConfigureRequest{ProtocolVersion: 1, Profile: berthtest.Profile}
	response, err := r.identity.Configure(r.ctx, request)
	must(r.t, err)
	if len(response.Errors) > 0 {
		r.t.Fatal(response.Errors)
	}
}

// stream is an open Sync stream.
type stream struct {
	t *testing.T
	grpc.BidiStreamingClient[pb.SyncRequest, pb.SyncResponse]
}

// sync opens a stream and gives what the plugin holds.
func (r *raw) sync() (*stream, *pb.Held) {
	r.t.Helper()
	opened, err := r.state.Sync(r.ctx)
	must(r.t, err)
	first, err := opened.Recv()
	must(r.t, err)
	return &stream{r.t, opened}, first.GetHeld()
}

func (s *stream) say(messages ...*pb.SyncRequest) {
	s.t.Helper()
	for _, message := range messages {
		must(s.t, s.Send(message))
	}
}

// hear says messages and gives the one answer to them.
func (s *stream) hear(messages ...*pb.SyncRequest) *pb.SyncResponse {
	s.t.Helper()
	s.say(messages...)
	answer, err := s.Recv()
	must(s.t, err)
	return answer
}

func begin(epoch string) *pb.SyncRequest {
	return &pb.SyncRequest{Body: &pb.SyncRequest_Begin{Begin: &pb.Begin{Epoch: epoch}}}
}

func resume(epoch string, generation int64) *pb.SyncRequest {
	body := &pb.Begin{Epoch: epoch, ResumeGeneration: &generation}
	return &pb.SyncRequest{Body: &pb.SyncRequest_Begin{Begin: body}}
}

func chunk(changes ...*pb.Change) *pb.SyncRequest {
	return &pb.SyncRequest{Body: &pb.SyncRequest_Chunk{Chunk: &pb.Chunk{Changes: changes}}}
}

func commit(generation int64, nodes uint32) *pb.SyncRequest {
	body := &pb.Commit{Generation: generation, NodeCount: nodes}
	return &pb.SyncRequest{Body: &pb.SyncRequest_Commit{Commit: body}}
}

func step(base, generation int64, nodes uint32, changes ...*pb.Change) *pb.Delta {
	return &pb.Delta{BaseGeneration: base, Generation: generation, NodeCount: nodes, Changes: changes}
}

func delta(body *pb.Delta) *pb.SyncRequest {
	return &pb.SyncRequest{Body: &pb.SyncRequest_Delta{Delta: body}}
}

func nodeAt(index uint32, name string) *pb.Change {
	data, _ := json.Marshal(berthtest.Node(name))
	return &pb.Change{Change: &pb.Change_NodeUpsert{NodeUpsert: &pb.NodeUpsert{Index: index, Name: name, Object: data}}}
}

func nodeGone(index uint32, name string) *pb.Change {
	return &pb.Change{Change: &pb.Change_NodeRemove{NodeRemove: &pb.NodeRemove{Index: index, Name: name}}}
}

// transferred opens a stream with nodes a and b at generation 1 of epoch "e".
func (r *raw) transferred() *stream {
	r.t.Helper()
	opened, _ := r.sync()
	answer := opened.hear(begin("e"), chunk(nodeAt(0, "a"), nodeAt(1, "b")), commit(1, 2))
	if answer.GetAck().GetGeneration() != 1 {
		r.t.Fatalf("expected an Ack of 1, got %v", answer)
	}
	return opened
}

// head is a call's head for the blue pod, with its object.
func head(generation int64, deltas ...*pb.Delta) *pb.Call {
	data, _ := json.Marshal(bluePod)
	ref := &pb.PodRef{Uid: "u", Namespace: "default", Name: "p", Attempt: 1, Object: data}
	return &pb.Call{Epoch: "e", Generation: generation, Profile: berthtest.Profile, Pod: ref, Deltas: deltas}
}

// filter asks Filter; the second value is `berth-reason` of a refusal.
func (r *raw) filter(call *pb.Call) (*pb.FilterResponse, string, error) {
	var trailer metadata.MD
	response, err := r.scheduling.Filter(r.ctx, &pb.FilterRequest{Call: call}, grpc.Trailer(&trailer))
	reason := ""
	if values := trailer.Get("berth-reason"); len(values) > 0 {
		reason = values[0]
	}
	return response, reason, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
