package berthtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// Profile is the profile that a Host configures.
const Profile = "default-scheduler"

const patience = time.Minute

var epochs atomic.Int64

// Host is one connection to a plugin, with a cluster of its own to show it.
// Every method sends the changes made to Cluster before it asks, and ends the
// test where the plugin breaks the protocol.
type Host struct {
	Cluster *Cluster
	// Address is where the plugin is served.
	Address string
	// Epoch names the host's run; change it before Sync to be another one.
	Epoch string
	// Listed names nodes that are asked about by their indices, not by a bitmap.
	Listed bool
	// Once asks no node alone after all were asked about together: for plugins that
	// count their calls.
	Once bool
	// Traceparent is the W3C context that calls carry.
	Traceparent string

	t          testing.TB
	connection *grpc.ClientConn
	identity   pb.IdentityServiceClient
	state      pb.StateServiceClient
	scheduling pb.SchedulingServiceClient
	placement  pb.PlacementServiceClient
	groups     pb.GroupServiceClient
	queueing   pb.QueueingServiceClient
	introduced *pb.HandshakeResponse
	attempts   map[string]uint32
	stream     grpc.BidiStreamingClient[pb.SyncRequest, pb.SyncResponse]
	hangUp     context.CancelFunc
}

// Run serves the plugin in this process, on a socket of its own, shows it the
// nodes, and stops it when the test ends.
func Run(t testing.TB, plugin *berth.Plugin, nodes ...*corev1.Node) *Host {
	t.Helper()
	return RunWith(t, plugin, nil, nodes...)
}

// RunWith does so with arguments: anything that encodes to their JSON.
func RunWith(t testing.TB, plugin *berth.Plugin, arguments any, nodes ...*corev1.Node) *Host {
	t.Helper()
	host := Connect(t, Serve(t, plugin))
	for _, node := range nodes {
		host.Cluster.PutNode(node)
	}
	host.Start(arguments)
	return host
}

// Serve serves the plugin until the test ends, and gives its address.
func Serve(t testing.TB, plugin *berth.Plugin, options ...berth.Option) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "berth-") // a test's own folder may be too long for a socket
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	address := "unix:" + filepath.Join(folder, "plugin.sock")
	server, err := berth.NewServer(plugin, address, append(options, berth.WithGrace(time.Second))...)
	must(t, err)
	must(t, server.Start())
	t.Cleanup(server.Stop)
	return address
}

// Connect dials a plugin that is being served; Start makes it ready.
func Connect(t testing.TB, address string) *Host {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	host := &Host{
		Cluster:    newCluster(),
		Address:    address,
		Epoch:      fmt.Sprintf("test-%d-%d", os.Getpid(), epochs.Add(1)),
		t:          t,
		connection: connection,
		identity:   pb.NewIdentityServiceClient(connection),
		state:      pb.NewStateServiceClient(connection),
		scheduling: pb.NewSchedulingServiceClient(connection),
		placement:  pb.NewPlacementServiceClient(connection),
		groups:     pb.NewGroupServiceClient(connection),
		queueing:   pb.NewQueueingServiceClient(connection),
		attempts:   map[string]uint32{},
	}
	t.Cleanup(host.Close)
	return host
}

// Start shakes hands, configures the profile and transfers the cluster.
func (h *Host) Start(arguments any) {
	h.t.Helper()
	ctx, cancel := h.context()
	defer cancel()
	request := &pb.HandshakeRequest{HostName: "berthtest", HostVersion: "1", SupportedVersions: []uint32{1}}
	introduced, err := h.identity.Handshake(ctx, request)
	must(h.t, err)
	h.introduced = introduced
	if problems := h.Configure(arguments); len(problems) > 0 {
		h.t.Fatalf("arguments: %v", problems)
	}
	h.Sync()
}

// Close hangs up.
func (h *Host) Close() {
	if h.hangUp != nil {
		h.hangUp()
	}
	_ = h.connection.Close()
}

// Configure configures the profile and gives the plugin's errors.
func (h *Host) Configure(arguments any) []string {
	h.t.Helper()
	return h.configure(arguments, &pb.ConfigureRequest{ProtocolVersion: 1, Profile: Profile})
}

// ConfigureShadow configures the profile's shadow and gives the plugin's
// errors.
func (h *Host) ConfigureShadow(arguments any) []string {
	h.t.Helper()
	return h.configure(arguments, &pb.ConfigureRequest{ProtocolVersion: 1, Profile: Profile, Shadow: true})
}

func (h *Host) configure(arguments any, request *pb.ConfigureRequest) []string {
	h.t.Helper()
	ctx, cancel := h.context()
	defer cancel()
	if arguments != nil {
		data, err := json.Marshal(arguments)
		must(h.t, err)
		request.Arguments = data
	}
	response, err := h.identity.Configure(ctx, request)
	must(h.t, err)
	return response.Errors
}

// Sync opens the state stream and transfers everything, as a host does that
// starts over.
func (h *Host) Sync() {
	h.t.Helper()
	h.open()
	for _, message := range h.Cluster.transfer(h.Epoch) {
		must(h.t, h.stream.Send(message))
	}
	h.acknowledged()
}

// Resume opens the state stream and goes on from what the plugin holds.
func (h *Host) Resume() {
	h.t.Helper()
	held := h.open()
	if held.Epoch != h.Epoch || held.Generation > h.Cluster.Generation {
		h.t.Fatalf("the plugin holds generation %d of epoch %q", held.Generation, held.Epoch)
	}
	begin := &pb.Begin{Epoch: h.Epoch, ResumeGeneration: &held.Generation}
	must(h.t, h.stream.Send(&pb.SyncRequest{Body: &pb.SyncRequest_Begin{Begin: begin}}))
	h.acknowledged()
}

// Update sends what changed in the cluster, if anything did.
func (h *Host) Update() {
	h.t.Helper()
	if len(h.Cluster.pending) == 0 {
		return
	}
	delta := h.Cluster.step()
	must(h.t, h.stream.Send(&pb.SyncRequest{Body: &pb.SyncRequest_Delta{Delta: delta}}))
	h.acknowledged()
}

// SetTime has the plugin's clock stand at that time, to the microsecond, and gives
// when its next timer is due; the zero time if none is. What is due by then runs
// first, each timer at its time.
func (h *Host) SetTime(when time.Time) time.Time {
	h.t.Helper()
	said := &pb.Time{UnixMicros: when.UnixMicro()}
	must(h.t, h.stream.Send(&pb.SyncRequest{Body: &pb.SyncRequest_Time{Time: said}}))
	reached := h.heard().GetTimeReached()
	if reached.GetUnixMicros() != said.UnixMicros {
		h.t.Fatalf("the plugin holds %v, the time is %v: has it a Clock?", reached, said)
	}
	if reached.WakeAtUnixMicros == nil {
		return time.Time{}
	}
	return time.UnixMicro(*reached.WakeAtUnixMicros)
}

func (h *Host) open() *pb.Held {
	h.t.Helper()
	if h.hangUp != nil {
		h.hangUp()
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.hangUp = cancel
	stream, err := h.state.Sync(ctx)
	must(h.t, err)
	h.stream = stream
	return h.heard().GetHeld()
}

func (h *Host) acknowledged() {
	h.t.Helper()
	answer := h.heard()
	if generation := answer.GetAck().GetGeneration(); generation < h.Cluster.Generation {
		h.t.Fatalf("expected an Ack of generation %d, got %v", h.Cluster.Generation, answer)
	}
}

func (h *Host) heard() *pb.SyncResponse {
	h.t.Helper()
	late := time.AfterFunc(patience, h.hangUp)
	defer late.Stop()
	answer, err := h.stream.Recv()
	must(h.t, err)
	return answer
}

func (h *Host) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	if h.Traceparent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", h.Traceparent)
	}
	return ctx, cancel
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
