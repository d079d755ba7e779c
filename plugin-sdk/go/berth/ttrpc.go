package berth

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const (
	ttrpcSuffix    = ".ttrpc"
	ttrpcHeader    = 10
	ttrpcRequest   = 1
	ttrpcResponse  = 2
	ttrpcMostBytes = 4 << 20
	// ttrpcMostRunning is how many calls of a connection run before no more are read.
	ttrpcMostRunning = 1024
	// longestSocketPath is what a unix socket's address holds.
	longestSocketPath = 107
	// payloadField is the number of TtrpcResponse.payload.
	payloadField = 2
	errorInfoURL = "type.googleapis.com/google.rpc.ErrorInfo"
)

// framedMethod answers the payload of one frame in its turn.
type framedMethod func(ctx context.Context, server *Server, here *place, carrier traceCarrier, payload []byte) (proto.Message, error)

// headedMessage is a request about a pod or its group as it travels.
type headedMessage interface {
	headed
	proto.Message
}

// framedMethods are the calls served in ttrpc's frames, by service and method.
// ttrpc's own server starts a goroutine for each call before it has a place in
// the line, which would lose their order.
var framedMethods = map[string]framedMethod{
	full("PreEnqueue"):         framed("PreEnqueue", (*call).preEnqueue),
	full("Filter"):             framed("Filter", (*call).filter),
	full("Score"):              framed("Score", (*call).score),
	full("FilterScore"):        framed("FilterScore", (*call).filterScore),
	full("FilterOverlays"):     framed("FilterOverlays", (*call).filterOverlays),
	full("PostFilter"):         framed("PostFilter", (*call).postFilter),
	full("Reserve"):            framed("Reserve", (*call).reserve),
	full("Unreserve"):          framed("Unreserve", (*call).unreserve),
	full("Permit"):             framed("Permit", (*call).permit),
	full("PreBind"):            framed("PreBind", (*call).preBind),
	full("Bind"):               framed("Bind", (*call).bind),
	full("PostBind"):           framed("PostBind", (*call).postBind),
	full("CycleDone"):          framed("CycleDone", (*call).cycleDone),
	full("GeneratePlacements"): framed("GeneratePlacements", (*call).generatePlacements),
	full("ScorePlacements"):    framed("ScorePlacements", (*call).scorePlacements),
	full("PlacementFeasible"):  framed("PlacementFeasible", (*call).placementFeasible),
	full("PodGroupPostFilter"): framed("PodGroupPostFilter", (*call).podGroupPostFilter),
	full("QueueingHints"):      framedOfQueue("QueueingHints", (*session).hints),
	full("SortKeys"):           framedOfQueue("SortKeys", (*session).sortKeys),
}

func framed[Q headedMessage, R proto.Message](name string, function func(*call, Q) (R, error)) framedMethod {
	return func(ctx context.Context, server *Server, here *place, carrier traceCarrier, payload []byte) (proto.Message, error) {
		var kind Q
		request := kind.ProtoReflect().New().Interface().(Q)
		if err := proto.Unmarshal(payload, request); err != nil {
			return nil, unanswered(ctx, here, invalid("%s: %v", name, err))
		}
		return answered(ctx, server, here, name, carrier, request, function)
	}
}

func framedOfQueue[Q, R proto.Message](name string, function func(*session, Q) (R, error)) framedMethod {
	return func(ctx context.Context, server *Server, here *place, carrier traceCarrier, payload []byte) (proto.Message, error) {
		var kind Q
		request := kind.ProtoReflect().New().Interface().(Q)
		if err := proto.Unmarshal(payload, request); err != nil {
			return nil, unanswered(ctx, here, invalid("%s: %v", name, err))
		}
		return inTurn(ctx, server, here, name, carrier, func(context.Context) (R, error) {
			return function(server.session, request)
		})
	}
}

// ttrpcServer is the second socket and its connections.
type ttrpcServer struct {
	server      *Server
	listener    net.Listener
	mutex       sync.Mutex
	connections map[*ttrpcConnection]struct{}
	stopped     bool
}

// listenForFrames serves the socket beside path; nil where its path would be too
// long for a socket.
func (s *Server) listenForFrames(path string) (*ttrpcServer, error) {
	path += ttrpcSuffix
	if len(path) > longestSocketPath {
		slog.Warn("ttrpc is not served, the path is too long", "path", path)
		return nil, nil
	}
	listener, err := listenOnSocket(path)
	if err != nil {
		return nil, err
	}
	made := &ttrpcServer{server: s, listener: listener, connections: map[*ttrpcConnection]struct{}{}}
	go made.accept()
	return made, nil
}

// name is what the handshake announces.
func (t *ttrpcServer) name() *string {
	if t == nil {
		return nil
	}
	return proto.String(filepath.Base(t.listener.Addr().String()))
}

func (t *ttrpcServer) accept() {
	for {
		conn, err := t.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				slog.Error("serving ttrpc ended", "error", err)
			}
			return
		}
		made := &ttrpcConnection{server: t.server, conn: conn, free: make(chan struct{}, ttrpcMostRunning)}
		t.mutex.Lock()
		if t.stopped {
			_ = conn.Close()
		} else {
			t.connections[made] = struct{}{}
			go func() {
				made.serve()
				t.mutex.Lock()
				defer t.mutex.Unlock()
				delete(t.connections, made)
			}()
		}
		t.mutex.Unlock()
	}
}

// stop lets calls that are running end, within the time, and hangs up.
func (t *ttrpcServer) stop(grace time.Duration) {
	if t == nil {
		return
	}
	_ = t.listener.Close()
	t.mutex.Lock()
	t.stopped = true
	var connections []*ttrpcConnection
	for each := range t.connections {
		connections = append(connections, each)
	}
	t.mutex.Unlock()
	ended := make(chan struct{})
	go func() {
		for _, each := range connections {
			each.running.Wait()
		}
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(grace):
	}
	for _, each := range connections {
		_ = each.conn.Close()
	}
}

// ttrpcConnection is one host's connection.
type ttrpcConnection struct {
	server  *Server
	conn    net.Conn
	writing sync.Mutex
	// frame is the answer last written. The next one takes its place: an answer
	// about all nodes is long, and garbage of each would have to be collected.
	frame   []byte
	running calls
	free    chan struct{}
}

// serve reads frames until one does not belong there, or the host hangs up.
func (c *ttrpcConnection) serve() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := c.listen(ctx)
	_ = c.conn.Close()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		slog.Warn("ttrpc connection ended", "error", err)
	}
}

func (c *ttrpcConnection) listen(ctx context.Context) error {
	reader := bufio.NewReaderSize(c.conn, 64<<10)
	var message []byte
	for {
		stream, request, err := readFrame(reader, &message)
		if err != nil {
			return err
		}
		c.free <- struct{}{}
		if !c.running.begin() {
			return nil
		}
		here := c.server.session.line.place()
		go func() {
			defer func() {
				c.running.end()
				<-c.free
			}()
			response, err := c.reply(ctx, request, here)
			c.write(stream, response, err)
		}()
	}
}

// readFrame reads one frame. It is decoded out of the buffer, which the next frame
// may have: what is decoded holds none of it.
func readFrame(reader *bufio.Reader, buffer *[]byte) (stream uint32, request *pb.TtrpcRequest, err error) {
	var header [ttrpcHeader]byte
	if _, err = io.ReadFull(reader, header[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(header[:4])
	stream = binary.BigEndian.Uint32(header[4:8])
	if length > ttrpcMostBytes {
		return 0, nil, fmt.Errorf("a frame of %d bytes, at most %d are read", length, ttrpcMostBytes)
	}
	if header[8] != ttrpcRequest || stream%2 == 0 {
		return 0, nil, fmt.Errorf("a frame of type %d on stream %d", header[8], stream)
	}
	*buffer = slices.Grow((*buffer)[:0], int(length))[:length]
	if _, err = io.ReadFull(reader, *buffer); err != nil {
		return 0, nil, err
	}
	request = &pb.TtrpcRequest{}
	return stream, request, proto.Unmarshal(*buffer, request)
}

func (c *ttrpcConnection) reply(ctx context.Context, request *pb.TtrpcRequest, here *place) (proto.Message, error) {
	if request.TimeoutNano > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(request.TimeoutNano))
		defer cancel()
		ctx = limited
	}
	method, known := framedMethods[request.Service+"/"+request.Method]
	if !known {
		text := fmt.Sprintf("no such call: %s/%s", request.Service, request.Method)
		return nil, unanswered(ctx, here, &callError{codes.Unimplemented, "", text})
	}
	carrier := carrierOver("ttrpc")
	for _, each := range request.Metadata {
		carrier.Set(each.Key, each.Value)
	}
	return method(ctx, c.server, here, carrier, request.Payload)
}

func (c *ttrpcConnection) write(stream uint32, response proto.Message, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err == nil {
		c.frame, err = appendAnswer(emptyFrame(c.frame), response)
	}
	if length := len(c.frame) - ttrpcHeader; err == nil && length > ttrpcMostBytes {
		text := fmt.Sprintf("an answer of %d bytes, at most %d are sent", length, ttrpcMostBytes)
		err = &callError{codes.ResourceExhausted, "", text}
	}
	if err != nil {
		refusal := refusedFrame(asCallError(err))
		if c.frame, err = (proto.MarshalOptions{}).MarshalAppend(emptyFrame(c.frame), refusal); err != nil {
			slog.Error("answer not sent", "error", err)
			return
		}
	}
	binary.BigEndian.PutUint32(c.frame, uint32(len(c.frame)-ttrpcHeader))
	binary.BigEndian.PutUint32(c.frame[4:], stream)
	c.frame[8] = ttrpcResponse
	_, _ = c.conn.Write(c.frame) // a connection that broke is reported by reading it
}

// emptyFrame gives a frame with no more than the room for its header.
func emptyFrame(before []byte) []byte {
	return append(before[:0], make([]byte, ttrpcHeader)...)
}

// appendAnswer appends a TtrpcResponse with this payload. The payload is encoded
// where it belongs: as a field of a message it would be encoded, and copied, before.
func appendAnswer(frame []byte, payload proto.Message) ([]byte, error) {
	size := proto.Size(payload)
	frame = protowire.AppendTag(slices.Grow(frame, size+2*binary.MaxVarintLen64), payloadField, protowire.BytesType)
	frame = protowire.AppendVarint(frame, uint64(size))
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(frame, payload)
}

func refusedFrame(failed *callError) *pb.TtrpcResponse {
	status := &pb.TtrpcStatus{Code: int32(failed.code), Message: shortened(failed.text)}
	if failed.reason != "" {
		info, _ := proto.Marshal(&pb.TtrpcErrorInfo{Reason: failed.reason, Domain: "berth"})
		status.Details = []*anypb.Any{{TypeUrl: errorInfoURL, Value: info}}
	}
	return &pb.TtrpcResponse{Status: status}
}
