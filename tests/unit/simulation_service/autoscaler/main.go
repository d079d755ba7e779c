// Command autoscaler asks an expander as the cluster-autoscaler does: over TLS, with pods and nodes as
// k8s.io/api writes them. Standard input has {"options": [{"group", "count", "pods"}], "nodes": {group: node},
// "bytes": whether the newer fields are used}; the groups of the answer are printed, a line each.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
)

// The numbers of cluster-autoscaler/expander/grpcplugin/protos/expander.proto.
const (
	method       = "/grpcplugin.Expander/BestOptions"
	options      = 1
	nodeMap      = 2
	nodeBytesMap = 3
	nodeGroupID  = 1
	nodeCount    = 2
	debug        = 3
	pod          = 4
	podBytes     = 5
)

// What is asked is which option is chosen, not how soon.
const patience = time.Minute

type option struct {
	Group string   `json:"group"`
	Count uint64   `json:"count"`
	Pods  []v1.Pod `json:"pods"`
}

type request struct {
	Options []option           `json:"options"`
	Nodes   map[string]v1.Node `json:"nodes"`
	Bytes   bool               `json:"bytes"`
}

// plain passes bytes on as they are.
type plain struct{}

func (plain) Name() string                  { return "proto" }
func (plain) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (plain) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte{}, data...)
	return nil
}

func main() {
	address, certificate := os.Args[1], os.Args[2]
	input, err := io.ReadAll(os.Stdin)
	must(err)
	var asked request
	must(json.Unmarshal(input, &asked))
	trust, err := credentials.NewClientTLSFromFile(certificate, "")
	must(err)
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(trust))
	must(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	message, answer := asked.marshal(), []byte{}
	must(connection.Invoke(ctx, method, &message, &answer, grpc.ForceCodec(plain{})))
	for _, each := range fields(answer, options) {
		for _, name := range fields(each, nodeGroupID) {
			fmt.Println(string(name))
		}
	}
}

func (r request) marshal() []byte {
	podField, nodeField := protowire.Number(pod), protowire.Number(nodeMap)
	if r.Bytes {
		podField, nodeField = podBytes, nodeBytesMap
	}
	var message []byte
	for _, each := range r.Options {
		made := appended(nil, nodeGroupID, []byte(each.Group))
		made = protowire.AppendVarint(protowire.AppendTag(made, nodeCount, protowire.VarintType), each.Count)
		made = appended(made, debug, []byte("a test"))
		for i := range each.Pods {
			data, err := each.Pods[i].Marshal()
			must(err)
			made = appended(made, podField, data)
		}
		message = appended(message, options, made)
	}
	for group, node := range r.Nodes {
		data, err := node.Marshal()
		must(err)
		message = appended(message, nodeField, appended(appended(nil, 1, []byte(group)), 2, data))
	}
	return message
}

func appended(to []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), data)
}

// fields gives what a message has under a number, each as bytes.
func fields(message []byte, wanted protowire.Number) (found [][]byte) {
	for len(message) > 0 {
		number, kind, size := protowire.ConsumeTag(message)
		must(protowire.ParseError(min(size, 0)))
		message = message[size:]
		if number == wanted && kind == protowire.BytesType {
			data, _ := protowire.ConsumeBytes(message)
			found = append(found, data)
		}
		size = protowire.ConsumeFieldValue(number, kind, message)
		must(protowire.ParseError(min(size, 0)))
		message = message[size:]
	}
	return found
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
