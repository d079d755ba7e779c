// Benchecho answers every message of every gRPC stream, or every frame of
// ttrpc's, with as many bytes as it is asked for, for the benchmark of these by
// themselves.
//
//	benchecho grpc|ttrpc SOCKET BYTES
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/proto"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
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

func serveFrames(listener net.Listener, socket string, reply []byte) error {
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() { _ = answerFrames(conn, reply) }()
	}
}

// answerFrames answers one connection's frames.
func answerFrames(conn net.Conn, reply []byte) error {
	reader := bufio.NewReaderSize(conn, 64<<10)
	message, err := proto.Marshal(&pb.TtrpcResponse{Payload: reply})
	if err != nil {
		return err
	}
	for {
		header := make([]byte, 10)
		if _, err := io.ReadFull(reader, header); err != nil {
			return err
		}
		question := make([]byte, binary.BigEndian.Uint32(header))
		if _, err := io.ReadFull(reader, question); err != nil {
			return err
		}
		if err := proto.Unmarshal(question, &pb.TtrpcRequest{}); err != nil {
			return err
		}
		binary.BigEndian.PutUint32(header, uint32(len(message)))
		header[8] = 2
		if _, err := conn.Write(append(header, message...)); err != nil {
			return err
		}
	}
}

func main() {
	size, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	if os.Args[1] == "ttrpc" {
		log.Fatal(serveFrames(listener, os.Args[2], make([]byte, size)))
	}
	encoding.RegisterCodec(raw{})
	reply := make([]byte, size)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return answer(stream, reply)
	}))
	log.Fatal(server.Serve(listener))
}
