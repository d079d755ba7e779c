package berth_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

func TestWhatAPluginHasIsWhatItAnnounces(t *testing.T) {
	plugin := anyNode()
	plugin.Version = "1.2"
	plugin.QueueingHint = func(*corev1.Pod, berth.Event) bool { return true }
	plugin.Events = []berth.EventInterest{
		{Resource: "Node", Actions: []berth.Action{berth.Add}},
		{Resource: "Pod", Actions: []berth.Action{berth.Delete}, NoHint: true},
	}
	plugin.PodFields = []string{}
	r := dial(t, plugin)

	announced, err := r.identity.Handshake(r.ctx, &pb.HandshakeRequest{SupportedVersions: []uint32{1}})
	must(t, err)

	points := announced.Capabilities.ExtensionPoints
	want := []pb.ExtensionPoint{
		pb.ExtensionPoint_EXTENSION_POINT_FILTER, pb.ExtensionPoint_EXTENSION_POINT_QUEUEING_HINTS,
	}
	if !slices.Equal(want, points) || announced.Name != "any-node" || announced.Version != "1.2" {
		t.Errorf("announced %v", announced)
	}
	asks := []bool{announced.Capabilities.Events[0].AskHint, announced.Capabilities.Events[1].AskHint}
	if !slices.Equal([]bool{true, false}, asks) || announced.Capabilities.PodFields == nil {
		t.Errorf("events ask %v, pod fields %v", asks, announced.Capabilities.PodFields)
	}
}

func TestAPluginThatContradictsItselfIsNotServed(t *testing.T) {
	unreserve := func(context.Context, berth.PodKey, string) {}
	for name, plugin := range map[string]*berth.Plugin{
		"no DNS label":               {Name: "Team Nodes"},
		"need WantsPods":             {Name: "x", PodRemoved: func(*berth.PlacedPod) {}},
		"narrows WantsPods":          {Name: "x", PodResources: []string{"cpu"}},
		"go together":                {Name: "x", Unreserve: unreserve},
		"needs a resource":           {Name: "x", Events: []berth.EventInterest{{Resource: "Pod"}}},
		"needs a version and plural": {Name: "x", Resources: []berth.WatchedResource{{Group: "g"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := berth.NewServer(plugin, "unix:/nowhere")

			if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "and a plural", "and plural"), name) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReadinessIsConfiguredAndSynced(t *testing.T) {
	r := dial(t, anyNode())
	health := grpc_health_v1.NewHealthClient(r.connection)
	ask := func(service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
		answer, err := health.Check(r.ctx, &grpc_health_v1.HealthCheckRequest{Service: service})
		must(t, err)
		return answer.Status
	}
	const readiness = "berth.plugin.v1.SchedulingService"
	before := []any{ask(""), ask(readiness)}

	r.configure()
	configured := ask(readiness)
	r.transferred()

	serving, not := grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if !slices.Equal(before, []any{serving, not}) || configured != not || ask(readiness) != serving {
		t.Errorf("before %v, configured %v, synced %v", before, configured, ask(readiness))
	}
}

func TestTheSocketIsPrivateAndGoesWithTheServer(t *testing.T) {
	path := socketPath(t)
	server := started(t, anyNode(), "unix:"+path)

	info, err := os.Stat(path)
	must(t, err)
	server.Stop()

	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the socket's mode is %o", mode)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestASharedSocketIsOpenToItsGroup(t *testing.T) {
	t.Setenv("BERTH_PLUGIN_SOCKET_SHARED", "true")
	path := filepath.Join(filepath.Dir(socketPath(t)), "new", "x.sock")
	server := started(t, anyNode(), "unix:"+path)
	defer server.Stop()

	for name, want := range map[string]os.FileMode{filepath.Dir(path): 0o750, path: 0o660} {
		info, err := os.Stat(name)
		must(t, err)
		if mode := info.Mode().Perm(); mode != want {
			t.Errorf("the mode of %s is %o", name, mode)
		}
	}
}

func TestASocketThatIsNotServedIsTakenOver(t *testing.T) {
	path := socketPath(t)
	left, err := net.Listen("unix", path)
	must(t, err)
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, left.Close())

	started(t, anyNode(), "unix:"+path)
}

func TestAddressesThatCannotBeServedAreRefused(t *testing.T) {
	path := socketPath(t)
	started(t, anyNode(), "unix:"+path)
	file := path + ".file"
	must(t, os.WriteFile(file, nil, 0o600))
	for address, text := range map[string]string{
		"unix:" + path: "in use",
		"unix:" + file: "no socket",
		"127.0.0.1:0":  "without certificates",
	} {
		server, err := berth.NewServer(anyNode(), address)
		must(t, err)

		if err := server.Start(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, want %q", address, err, text)
		}
	}
}

// stoppedDuringACall stops a server while it answers a call, which goes on once release is closed.
func stoppedDuringACall(t *testing.T) (path string, answers chan berth.Status, release, stopped chan struct{}) {
	t.Helper()
	begun := make(chan struct{})
	answers, release, stopped = make(chan berth.Status), make(chan struct{}), make(chan struct{})
	plugin := anyNode()
	plugin.PreEnqueue = func(ctx context.Context, _ *corev1.Pod) *berth.Status {
		close(begun)
		<-release
		return nil
	}
	path = socketPath(t)
	server, err := berth.NewServer(plugin, "unix:"+path, berth.WithGrace(time.Minute))
	must(t, err)
	must(t, server.Start())
	host := berthtest.Connect(t, "unix:"+path)
	host.Start(nil)
	go func() { answers <- host.PreEnqueue(bluePod) }()
	<-begun
	go func() {
		server.Stop()
		close(stopped)
	}()
	return path, answers, release, stopped
}

func TestACallThatRunsIsAnsweredBeforeTheEnd(t *testing.T) {
	_, answers, release, stopped := stoppedDuringACall(t)

	close(release)

	if status := <-answers; status.Code != berth.Success {
		t.Errorf("got %v", status)
	}
	<-stopped
}

func TestBothSocketsStopAtOnce(t *testing.T) {
	path, answers, release, stopped := stoppedDuringACall(t)

	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path + ".ttrpc"); os.IsNotExist(err) {
			break
		}
		if time.Now().After(until) {
			t.Error("a call over gRPC keeps the second socket open")
			break
		}
	}
	close(release)
	<-answers
	<-stopped
}

func TestAStoppedPluginEndsItsStreams(t *testing.T) {
	plugin := anyNode()
	path := socketPath(t)
	server := started(t, plugin, "unix:"+path)
	r := dialAt(t, "unix:"+path)
	opened, _ := r.sync()
	talk, err := r.scheduling.Converse(r.ctx)
	must(t, err)

	server.Stop()

	for name, recv := range map[string]func() error{
		"Sync":     func() error { _, err := opened.Recv(); return err },
		"Converse": func() error { _, err := talk.Recv(); return err },
	} {
		if err := recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("%s ended with %v", name, err)
		}
	}
}

func TestMetricsTellOfCallsVerdictsAndState(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := probe.Addr().String()
	must(t, probe.Close())
	counting := teamNodes()
	counting.Metrics = func() []berth.Metric {
		values := []berth.Labelled{{Labels: map[string]string{"who": `a "b"`, "at": "n"}, Value: 3}, {Value: 0.5}}
		return []berth.Metric{{Name: "seen_total", Kind: "counter", Help: "Seen.", Values: values}}
	}
	counting.State = func() any { return map[string]int{"seen": 3} }
	r := dial(t, counting, berth.WithMetrics(address))
	r.configure()
	r.transferred()
	_, _, err = r.filter(head(1))
	must(t, err)
	_, _, _ = r.filter(&pb.Call{Pod: &pb.PodRef{}})

	text := page(t, address, "/metrics")
	if state := page(t, address, "/state"); state != "{\n  \"seen\": 3\n}\n" {
		t.Errorf("the state is %s", state)
	}
	counting.State = func() any { panic("no state") }
	if state := page(t, address, "/state"); state != "State failed\n" {
		t.Errorf("the state is %s", state)
	}

	for _, line := range []string{
		`berth_plugin_info{plugin="team-nodes",version="0.0.0"} 1`,
		`berth_plugin_answered_calls_total{method="Filter",code="OK"} 1`,
		`berth_plugin_answered_calls_total{method="Filter",code="FAILED_PRECONDITION"} 1`,
		`berth_plugin_call_duration_seconds_count{method="Filter"} 2`,
		`berth_plugin_node_verdicts_total{verdict="rejected"} 2`,
		`berth_plugin_state_generation 1`,
		`# TYPE seen_total counter`,
		`seen_total{at="n",who="a \"b\""} 3`,
		`seen_total 0.5`,
		`berth_plugin_state_objects{kind="nodes"} 2`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

func page(t *testing.T, address, path string) string {
	t.Helper()
	response, err := http.Get("http://" + address + path)
	must(t, err)
	text, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, response.Body.Close())
	return string(text)
}

func TestTimeIsWantedPointByPoint(t *testing.T) {
	plugin := anyNode()
	plugin.WantedDeadlines = map[string]time.Duration{"PreBind": 5 * time.Second}
	answer, err := dial(t, plugin).identity.Handshake(t.Context(), &pb.HandshakeRequest{SupportedVersions: []uint32{1}})
	must(t, err)
	wanted := answer.Capabilities.WantedDeadlines
	if len(wanted) != 1 || wanted[0].ExtensionPoint != pb.ExtensionPoint_EXTENSION_POINT_PRE_BIND || wanted[0].Deadline.Seconds != 5 {
		t.Errorf("%v is announced", wanted)
	}
	plugin.WantedDeadlines = map[string]time.Duration{"Prebind": time.Second, "Bind": 0}
	if err := plugin.Validate(); err == nil || !strings.Contains(err.Error(), `"Prebind"]: no`) || !strings.Contains(err.Error(), `"Bind"] is not above 0`) {
		t.Errorf("Validate says %v", err)
	}
}

func TestServeNeedsAnAddress(t *testing.T) {
	t.Setenv("BERTH_PLUGIN_ADDRESS", "")

	if err := berth.Serve(t.Context(), anyNode(), ""); err == nil {
		t.Error("served nowhere")
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path := socketPath(t)
	ended := make(chan error)
	go func() { ended <- berth.Serve(ctx, anyNode(), "unix:"+path) }()

	cancel()

	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func socketPath(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "berth-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, fmt.Sprintf("%d.sock", time.Now().UnixNano()))
}

func started(t *testing.T, plugin *berth.Plugin, address string) *berth.Server {
	t.Helper()
	server, err := berth.NewServer(plugin, address, berth.WithGrace(time.Minute))
	must(t, err)
	must(t, server.Start())
	t.Cleanup(server.Stop)
	return server
}
