package berth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Metric is something that a plugin counts or measures itself.
type Metric struct {
	// Name is of letters, digits and underscores; a counter's ends with "_total".
	Name string
	// Kind is "counter" or "gauge".
	Kind string
	Help string
	// Values are the numbers, each with its labels.
	Values []Labelled
}

// Labelled is a number with labels.
type Labelled struct {
	Labels map[string]string
	Value  float64
}

// servePages answers GET /metrics and GET /state over HTTP.
func (s *session) servePages(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		s.meter.write(response)
		if own := s.plugin.Metrics; own != nil {
			var metrics []Metric
			s.plugin.Do(func() { metrics = own() })
			writeOwn(response, metrics)
		}
	})
	mux.HandleFunc("GET /state", func(response http.ResponseWriter, _ *http.Request) {
		s.writeState(response)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, net.ErrClosed) {
			slog.Warn("metrics ended", "error", err)
		}
	}()
	return listener, nil
}

// writeState gives how things stand, made into text before another call may
// change it.
func (s *session) writeState(response http.ResponseWriter) {
	text, err := []byte("{}"), error(nil)
	if own := s.plugin.State; own != nil {
		err = errors.New("State failed")
		s.plugin.Do(func() { text, err = json.MarshalIndent(own(), "", "  ") })
	}
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	_, _ = response.Write(append(text, '\n'))
}

func writeOwn(out io.Writer, metrics []Metric) {
	for _, each := range metrics {
		_, _ = fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", each.Name, each.Help, each.Name, each.Kind)
		for _, value := range each.Values {
			_, _ = fmt.Fprintf(out, "%s%s %v\n", each.Name, labelled(value.Labels), value.Value)
		}
	}
}

func labelled(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	parts := []string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", name, labels[name]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
