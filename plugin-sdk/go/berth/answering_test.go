package berth_test

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const manyNodes = 5000

// everyTenth turns down every tenth node, all at once, with vectors made before.
func everyTenth() *berth.Plugin {
	codes, points := make([]uint8, manyNodes), make([]int64, manyNodes)
	for i := range codes {
		if i%10 == 0 {
			codes[i] = 1
		}
		points[i] = int64(i % 101)
	}
	return &berth.Plugin{
		Name: "every-tenth",
		FilterNodes: func(*corev1.Pod, *berth.Nodes) berth.Verdicts {
			return berth.Verdicts{Codes: codes, Reasons: []berth.Reason{*wrongTeam}}
		},
		ScoreNodes: func(*corev1.Pod, *berth.Nodes) []int64 { return points },
	}
}

func TestAnAnswerAllocatesNoMoreThanItsVectors(t *testing.T) {
	// The figure is of the whole process: what other goroutines allocate meanwhile
	// has half a byte a node, which one more vector of bytes would exceed.
	const calls, others = 50, manyNodes / 2
	for name, test := range map[string]struct {
		plugin *berth.Plugin
		asked  *pb.Candidates
		most   uint64
	}{
		"all nodes at once": {everyTenth(), nil, 3*manyNodes + others},
		"all, node by node": {byNode(), nil, 7*manyNodes + others},
		"ten, node by node": {byNode(), &pb.Candidates{Indices: indices(1, 2, 3, 5, 8, 13, 21, 34, 55, 89)}, manyNodes + others},
		"ten, all at once":  {everyTenth(), &pb.Candidates{Indices: indices(1, 2, 3, 5, 8, 13, 21, 34, 55, 89)}, manyNodes + others},
	} {
		t.Run(name, func(t *testing.T) {
			host := berthtest.Run(t, test.plugin, nodesOf(manyNodes)...)
			ask := framed(t, host, &pb.FilterScoreRequest{Call: headOf(host), Candidates: test.asked})
			ask() // what is kept for the next calls is made
			var before, after runtime.MemStats

			runtime.ReadMemStats(&before)
			for range calls {
				ask()
			}
			runtime.ReadMemStats(&after)

			if each := (after.TotalAlloc - before.TotalAlloc) / calls; each > test.most {
				t.Errorf("%d bytes a call, at most %d are expected", each, test.most)
			}
		})
	}
}

// BenchmarkFilterScore shows what an answer in a frame takes, and allocates: the
// client allocates nothing.
func BenchmarkFilterScore(b *testing.B) {
	few := []uint32{}
	for i := range uint32(10) {
		few = append(few, i*100)
	}
	for _, plugin := range []*berth.Plugin{everyTenth(), byNode()} {
		host := berthtest.Run(b, plugin, nodesOf(manyNodes)...)
		for name, asked := range map[string]*pb.Candidates{"all": nil, "ten": {Indices: indices(few...)}} {
			b.Run(plugin.Name+"/"+name, func(b *testing.B) {
				ask := framed(b, host, &pb.FilterScoreRequest{Call: headOf(host), Candidates: asked})
				b.ReportAllocs()
				for b.Loop() {
					ask()
				}
			})
		}
	}
}

func headOf(host *berthtest.Host) *pb.Call {
	object, _ := json.Marshal(bluePod)
	ref := &pb.PodRef{Uid: "u", Namespace: "default", Name: "p", Attempt: 1, Object: object}
	return &pb.Call{Epoch: host.Epoch, Generation: host.Cluster.Generation, Profile: berthtest.Profile, Pod: ref}
}

// framed makes a call in a frame, whenever the function is called; the answer is
// read and left.
func framed(t testing.TB, host *berthtest.Host, request *pb.FilterScoreRequest) func() {
	t.Helper()
	payload, err := proto.Marshal(request)
	must(t, err)
	message, err := proto.Marshal(&pb.TtrpcRequest{
		Service: "berth.plugin.v1.SchedulingService", Method: "FilterScore", Payload: payload, TimeoutNano: 1e10,
	})
	must(t, err)
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(message)))
	frame = append(append(frame, 0, 0, 0, 1, 1, 0), message...)
	connection, err := net.Dial("unix", strings.TrimPrefix(host.Address, "unix:")+".ttrpc")
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	answer := make([]byte, 1<<20)
	return func() {
		_, err := connection.Write(frame)
		must(t, err)
		_, err = io.ReadFull(connection, answer[:10])
		must(t, err)
		_, err = io.ReadFull(connection, answer[:binary.BigEndian.Uint32(answer)])
		must(t, err)
	}
}
