// A peer over containerd's own ttrpc library, which this repository did not write.
//
//	ttrpc-peer serve SOCKET
//	ttrpc-peer ask SOCKET METHOD PAYLOAD_IN_HEX TIMEOUT TRACEPARENT
//
// Messages are passed on as they came: an empty message keeps what it does not know.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

const service = "berth.plugin.v1.SchedulingService"

func main() {
	if len(os.Args) < 3 {
		log.Fatal("serve or ask")
	}
	var err error
	if os.Args[1] == "serve" {
		err = serve(os.Args[2])
	} else {
		err = ask(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve(socket string) error {
	server, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	server.Register(service, map[string]ttrpc.Method{
		"Unreserve": method(func(_ context.Context, message *emptypb.Empty) (any, error) { return message, nil }),
		"PostBind":  method(refuse),
		"Permit":    method(tellTrace),
		"CycleDone": method(waitForTheEnd),
	})
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	return server.Serve(context.Background(), listener)
}

func method(function func(context.Context, *emptypb.Empty) (any, error)) ttrpc.Method {
	return func(ctx context.Context, read func(any) error) (any, error) {
		message := &emptypb.Empty{}
		if err := read(message); err != nil {
			return nil, err
		}
		return function(ctx, message)
	}
}

func refuse(context.Context, *emptypb.Empty) (any, error) {
	refused := status.New(codes.FailedPrecondition, "nothing is held")
	detailed, err := refused.WithDetails(&errdetails.ErrorInfo{Reason: "NOT_SYNCED", Domain: "berth"})
	if err != nil {
		return nil, err
	}
	return nil, detailed.Err()
}

func tellTrace(ctx context.Context, _ *emptypb.Empty) (any, error) {
	trace, _ := ttrpc.GetMetadataValue(ctx, "traceparent")
	return nil, status.Error(codes.Internal, trace)
}

func waitForTheEnd(ctx context.Context, _ *emptypb.Empty) (any, error) {
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}

func ask(socket, name, payload, timeout, trace string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	client := ttrpc.NewClient(conn)
	defer func() { _ = client.Close() }()
	data, err := hex.DecodeString(payload)
	if err != nil {
		return err
	}
	request, response := &emptypb.Empty{}, &emptypb.Empty{}
	if err := proto.Unmarshal(data, request); err != nil {
		return err
	}
	patience, err := time.ParseDuration(timeout)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx = ttrpc.WithMetadata(ctx, ttrpc.MD{"traceparent": {trace}})
	err = client.Call(ctx, service, name, request, response)
	if err != nil {
		fmt.Println(answer(err))
		return nil
	}
	data, err = proto.Marshal(response)
	fmt.Printf("OK %s\n", hex.EncodeToString(data))
	return err
}

// answer is the code and the reason that an error stands for.
func answer(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded.String()
	}
	failed := status.Convert(err)
	text := failed.Code().String()
	for _, detail := range failed.Details() {
		if info, is := detail.(*errdetails.ErrorInfo); is {
			text += " " + info.Domain + " " + info.Reason
		}
	}
	return text
}
