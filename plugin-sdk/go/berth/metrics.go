package berth

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// secondsBounds are the upper bounds of the duration buckets.
var secondsBounds = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5}

// meter counts what the plugin does; each line of the exposition is made when
// it is read.
type meter struct {
	mutex      sync.Mutex
	info       string
	calls      map[[2]string]uint64 // by method and gRPC code
	durations  map[string]*durations
	passed     uint64
	rejected   uint64
	nacks      map[string]uint64
	generation int64
	nodes      int
	pods       int
	objects    int
}

type durations struct {
	buckets []uint64
	count   uint64
	sum     float64
}

func newMeter(name, version string) *meter {
	return &meter{
		info:      fmt.Sprintf("{plugin=%q,version=%q}", name, version),
		calls:     map[[2]string]uint64{},
		durations: map[string]*durations{},
		nacks:     map[string]uint64{},
	}
}

func (m *meter) answered(method string, err error, took time.Duration) {
	code := codes.OK
	if err != nil {
		code = asCallError(err).code
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.calls[[2]string{method, codeName(code)}]++
	known := m.durations[method]
	if known == nil {
		known = &durations{buckets: make([]uint64, len(secondsBounds))}
		m.durations[method] = known
	}
	known.observe(took.Seconds())
}

// codeName is a code as gRPC's own documents, and the SDKs in other languages,
// write it.
func codeName(code codes.Code) string {
	switch code {
	case codes.OK:
		return "OK"
	case codes.Canceled:
		return "CANCELLED"
	}
	return strings.ToUpper(capitals.ReplaceAllString(code.String(), "${1}_${2}"))
}

var capitals = regexp.MustCompile(`([a-z])([A-Z])`)

func (d *durations) observe(seconds float64) {
	d.count++
	d.sum += seconds
	if at, _ := slices.BinarySearch(secondsBounds, seconds); at < len(d.buckets) {
		d.buckets[at]++
	}
}

func (m *meter) verdicts(passed, rejected int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.passed += uint64(passed)
	m.rejected += uint64(rejected)
}

func (m *meter) refused(reason pb.NackReason) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.nacks[strings.TrimPrefix(reason.String(), "NACK_REASON_")]++
}

func (m *meter) state(held *mirror) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.generation, m.nodes, m.pods, m.objects = held.generation, len(held.nodes), len(held.pods), len(held.objects)
}

// write gives everything in Prometheus' text format.
func (m *meter) write(out io.Writer) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	line := func(format string, arguments ...any) { _, _ = fmt.Fprintf(out, format+"\n", arguments...) }
	head := func(name, kind, help string) { line("# HELP %s %s\n# TYPE %s %s", name, help, name, kind) }
	head("berth_plugin_info", "gauge", "The plugin.")
	line("berth_plugin_info%s 1", m.info)
	head("berth_plugin_answered_calls_total", "counter", "Calls answered, by method and gRPC code.")
	for _, key := range slices.SortedFunc(maps.Keys(m.calls), compareKeys) {
		line("berth_plugin_answered_calls_total{method=%q,code=%q} %d", key[0], key[1], m.calls[key])
	}
	head("berth_plugin_call_duration_seconds", "histogram", "Time to answer a call, waiting for state included.")
	for _, method := range slices.Sorted(maps.Keys(m.durations)) {
		m.durations[method].write(line, method)
	}
	head("berth_plugin_node_verdicts_total", "counter", "Nodes that passed Filter or were turned down.")
	line(`berth_plugin_node_verdicts_total{verdict="passed"} %d`, m.passed)
	line(`berth_plugin_node_verdicts_total{verdict="rejected"} %d`, m.rejected)
	head("berth_plugin_state_refusals_total", "counter", "Messages of the state stream that were refused, by reason.")
	for _, reason := range slices.Sorted(maps.Keys(m.nacks)) {
		line("berth_plugin_state_refusals_total{reason=%q} %d", reason, m.nacks[reason])
	}
	head("berth_plugin_state_generation", "gauge", "The generation of the state that is held, 0 if none is.")
	line("berth_plugin_state_generation %d", m.generation)
	head("berth_plugin_state_objects", "gauge", "What is held of the cluster.")
	line(`berth_plugin_state_objects{kind="nodes"} %d`, m.nodes)
	line(`berth_plugin_state_objects{kind="pods"} %d`, m.pods)
	line(`berth_plugin_state_objects{kind="other"} %d`, m.objects)
}

func (d *durations) write(line func(string, ...any), method string) {
	const name = "berth_plugin_call_duration_seconds"
	var below uint64
	for i, bound := range secondsBounds {
		below += d.buckets[i]
		line("%s_bucket{method=%q,le=\"%v\"} %d", name, method, bound, below)
	}
	line("%s_bucket{method=%q,le=\"+Inf\"} %d", name, method, d.count)
	line("%s_sum{method=%q} %v", name, method, d.sum)
	line("%s_count{method=%q} %d", name, method, d.count)
}

func compareKeys(a, b [2]string) int {
	if byMethod := strings.Compare(a[0], b[0]); byMethod != 0 {
		return byMethod
	}
	return strings.Compare(a[1], b[1])
}
