// Benchecho answers every message of every stream with as many bytes as it is
// told, for the benchmark of gRPC itself.
//
//	benchecho SOCKET BYTES
package main

import (
	"errors"
	"io"
	"log"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
)

// raw passes bytes through, in place of protobuf.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (raw) Unmarshal(data []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func answer(stream grpc.ServerStream, reply []byte) error {
	for {
		var question []byte
		err := stream.RecvMsg(&question)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = stream.SendMsg(&reply)
		}
		if err != nil {
			return err
		}
	}
}

func main() {
	size, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	encoding.RegisterCodec(raw{})
	reply := make([]byte, size)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return answer(stream, reply)
	}))
	log.Fatal(server.Serve(listener))
}
