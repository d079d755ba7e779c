package berth_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const schedulingService = "berth.plugin.v1.SchedulingService"

// frames is the host's end of a second socket.
type frames struct {
	t    *testing.T
	conn net.Conn
	next uint32
}

// overFrames dials the second socket of a plugin served at that address.
func overFrames(t *testing.T, address string) *frames {
	t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(address, "unix:")+".ttrpc")
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return &frames{t: t, conn: conn, next: 1}
}

func header(length, stream uint32, kind byte) []byte {
	made := make([]byte, 10)
	binary.BigEndian.PutUint32(made, length)
	binary.BigEndian.PutUint32(made[4:], stream)
	made[8] = kind
	return made
}

func (f *frames) send(method string, request proto.Message, timeout time.Duration) uint32 {
	f.t.Helper()
	payload, err := proto.Marshal(request)
	must(f.t, err)
	message, err := proto.Marshal(&pb.TtrpcRequest{
		Service: schedulingService, Method: method, Payload: payload, TimeoutNano: int64(timeout),
	})
	must(f.t, err)
	stream := f.next
	f.next += 2
	_, err = f.conn.Write(append(header(uint32(len(message)), stream, 1), message...))
	must(f.t, err)
	return stream
}

func (f *frames) read() (uint32, *pb.TtrpcResponse) {
	f.t.Helper()
	head := make([]byte, 10)
	_, err := io.ReadFull(f.conn, head)
	must(f.t, err)
	message := make([]byte, binary.BigEndian.Uint32(head))
	_, err = io.ReadFull(f.conn, message)
	must(f.t, err)
	response := &pb.TtrpcResponse{}
	must(f.t, proto.Unmarshal(message, response))
	return binary.BigEndian.Uint32(head[4:8]), response
}

func TestFramesAreAnsweredAsCalls(t *testing.T) {
	host := berthtest.Run(t, anyNode(), berthtest.Node("a"))
	request := &pb.UnreserveRequest{Call: &pb.Call{Pod: &pb.PodRef{Uid: "u"}}}
	wire := overFrames(t, host.Address)

	sent := wire.send("Unreserve", request, time.Minute)
	stream, response := wire.read()

	if stream != sent || response.Status != nil {
		t.Errorf("stream %d answered %d: %v", sent, stream, response.Status)
	}
}

func TestAFrameThatIsRefusedSaysWhy(t *testing.T) {
	host := berthtest.Run(t, anyNode(), berthtest.Node("a"))
	wire := overFrames(t, host.Address)
	call := &pb.Call{Epoch: "another", Profile: berthtest.Profile, Pod: &pb.PodRef{Uid: "u"}}

	wire.send("Filter", &pb.FilterRequest{Call: call}, time.Minute)
	_, refused := wire.read()
	wire.send("Guess", &pb.FilterRequest{}, time.Minute)
	_, unknown := wire.read()

	info := &pb.TtrpcErrorInfo{}
	must(t, proto.Unmarshal(refused.Status.Details[0].Value, info))
	if codes.Code(refused.Status.Code) != codes.FailedPrecondition || info.Reason != "NOT_SYNCED" {
		t.Errorf("refused %v, reason %q", refused.Status, info.Reason)
	}
	if codes.Code(unknown.Status.Code) != codes.Unimplemented {
		t.Errorf("an unknown method is answered %v", unknown)
	}
}

func TestLongAndShortAnswersAndRefusalsOnOneConnectionAreEachWhole(t *testing.T) {
	host := berthtest.Run(t, byNode(), nodesOf(300)...)
	wire := overFrames(t, host.Address)
	want := ask(t, host, headOf(host))
	stranger := headOf(host)
	stranger.Epoch = "another"
	for range 2 {
		wire.send("Filter", &pb.FilterRequest{Call: headOf(host)}, time.Minute)
		wire.send("Filter", &pb.FilterRequest{Call: stranger}, time.Minute)
		wire.send("Unreserve", &pb.UnreserveRequest{Call: headOf(host)}, time.Minute)
	}

	heard := map[uint32]*pb.TtrpcResponse{}
	for range 6 {
		stream, response := wire.read()
		heard[stream] = response
	}

	for stream := uint32(1); stream < 12; stream += 6 {
		got := &pb.FilterResponse{}
		must(t, proto.Unmarshal(heard[stream].Payload, got))
		if !proto.Equal(want, got) {
			t.Errorf("stream %d: got %v, want %v", stream, got, want)
		}
		if refused := heard[stream+2]; codes.Code(refused.Status.GetCode()) != codes.FailedPrecondition {
			t.Errorf("stream %d: answered %v", stream+2, refused)
		}
		if empty := heard[stream+4]; empty.Status != nil || len(empty.Payload) > 0 {
			t.Errorf("stream %d: answered %v", stream+4, empty)
		}
	}
}

// ask asks Filter over gRPC.
func ask(t *testing.T, host *berthtest.Host, call *pb.Call) *pb.FilterResponse {
	t.Helper()
	r := dialAt(t, host.Address)
	response, err := r.scheduling.Filter(r.ctx, &pb.FilterRequest{Call: call})
	must(t, err)
	return response
}

func TestACallInAFrameKeepsItsDeadline(t *testing.T) {
	host := berthtest.Run(t, anyNode(), berthtest.Node("a"))
	wire := overFrames(t, host.Address)
	call := &pb.Call{Epoch: host.Epoch, Generation: 99, Profile: berthtest.Profile, Pod: &pb.PodRef{Uid: "u"}}

	wire.send("Filter", &pb.FilterRequest{Call: call}, time.Millisecond)
	_, late := wire.read()

	if codes.Code(late.Status.GetCode()) != codes.DeadlineExceeded {
		t.Errorf("answered %v", late)
	}
}

func TestAFrameThatDoesNotBelongThereEndsItsConnection(t *testing.T) {
	host := berthtest.Run(t, anyNode(), berthtest.Node("a"))
	for name, data := range map[string][]byte{
		"too long":       header(4<<20+1, 1, 1),
		"a response":     header(0, 1, 2),
		"an even stream": header(0, 2, 1),
		"no message":     append(header(3, 1, 1), 0xff, 0xff, 0xff),
	} {
		t.Run(name, func(t *testing.T) {
			beside := overFrames(t, host.Address)
			wire := overFrames(t, host.Address)
			_, err := wire.conn.Write(data)
			must(t, err)
			if _, err := io.ReadAll(wire.conn); err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("the connection ends with %v", err)
			}
			beside.send("Guess", &pb.FilterRequest{}, time.Minute)
			beside.read()
		})
	}
}

func TestTheSecondSocketIsPrivateAndGoesWithTheServer(t *testing.T) {
	folder, err := os.MkdirTemp("", "berth-")
	must(t, err)
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "x.sock")
	server, err := berth.NewServer(anyNode(), "unix:"+path)
	must(t, err)
	must(t, server.Start())
	info, err := os.Stat(path + ".ttrpc")
	must(t, err)
	server.Stop()

	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if _, err := os.Stat(path + ".ttrpc"); !os.IsNotExist(err) {
		t.Errorf("after the stop: %v", err)
	}
}
