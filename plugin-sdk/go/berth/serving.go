package berth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// maxMessageBytes: replies and calls grow with the cluster; Sync stays below 4 MiB by itself.
const maxMessageBytes = 64 << 20

// Option is a choice about serving.
type Option func(*Server)

// WithCredentials serves TCP with these; demand the client's certificate too, as
// [MutualTLS] does.
func WithCredentials(chosen credentials.TransportCredentials) Option {
	return func(s *Server) { s.credentials = chosen }
}

// WithMetrics serves metrics in Prometheus' text format over HTTP at host:port.
func WithMetrics(address string) Option { return func(s *Server) { s.metricsAddress = address } }

// WithGrace says how long running calls may take to end when the server stops;
// 5 seconds without it.
func WithGrace(grace time.Duration) Option { return func(s *Server) { s.grace = grace } }

// WithTracing replaces what the environment says about traces.
func WithTracing(tracing *Tracing) Option { return func(s *Server) { s.tracing = tracing } }

// Server is a plugin being served.
type Server struct {
	plugin         *Plugin
	address        string
	session        *session
	credentials    credentials.TransportCredentials
	metricsAddress string
	listener       net.Listener
	metrics        net.Listener
	grace          time.Duration
	tracing        *Tracing
	grpc           *grpc.Server
	frames         *ttrpcServer
	health         *health.Server
	stopping       chan struct{}
	stop           sync.Once
}

// NewServer prepares to serve the plugin at unix:/path/to/socket, or at
// host:port with credentials.
//
// Errors: the plugin contradicts itself; the environment asks for traces that
// can't be written.
func NewServer(plugin *Plugin, address string, options ...Option) (*Server, error) {
	if err := plugin.Validate(); err != nil {
		return nil, err
	}
	meter := newMeter(plugin.Name, plugin.version())
	made := &Server{
		plugin:         plugin,
		address:        address,
		session:        newSession(plugin, meter),
		metricsAddress: os.Getenv("BERTH_METRICS_ADDRESS"),
		grace:          5 * time.Second,
		health:         health.NewServer(),
		stopping:       make(chan struct{}),
	}
	for _, option := range options {
		option(made)
	}
	if made.tracing == nil {
		tracing, err := TracingFromEnvironment(context.Background(), plugin.Name, plugin.version())
		if err != nil {
			return nil, err
		}
		made.tracing = tracing
	}
	made.session.onReady = made.reportReadiness
	plugin.served = made.session
	return made, nil
}

// Start listens and serves.
//
// Errors: the address is in use, or the address can't be served.
func (s *Server) Start() error {
	listener, err := s.listen()
	if err != nil {
		return err
	}
	if s.metricsAddress != "" {
		if s.metrics, err = s.session.servePages(s.metricsAddress); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	options := []grpc.ServerOption{grpc.MaxRecvMsgSize(maxMessageBytes), grpc.MaxSendMsgSize(maxMessageBytes)}
	if s.credentials != nil {
		options = append(options, grpc.Creds(s.credentials))
	}
	s.grpc = grpc.NewServer(options...)
	pb.RegisterIdentityServiceServer(s.grpc, &identityService{server: s})
	pb.RegisterStateServiceServer(s.grpc, &stateService{server: s})
	pb.RegisterSchedulingServiceServer(s.grpc, &schedulingService{server: s})
	pb.RegisterPlacementServiceServer(s.grpc, &placementService{server: s})
	pb.RegisterGroupServiceServer(s.grpc, &groupService{server: s})
	pb.RegisterQueueingServiceServer(s.grpc, &queueingService{server: s})
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.reportReadiness(false)
	if path, unix := unixPath(s.address); unix {
		if s.frames, err = s.listenForFrames(path); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	s.listener = listener
	if s.plugin.Clock != nil {
		s.plugin.Clock.serve(s.plugin.Do)
	}
	go s.serve()
	slog.Info("serving", "plugin", s.plugin.Name, "version", s.plugin.version(), "address", s.address)
	return nil
}

func (s *Server) serve() {
	if err := s.grpc.Serve(s.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		slog.Error("serving ended", "error", err)
	}
}

// Stop turns unready, lets calls that are running end, and writes out spans.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.health.Shutdown()
		close(s.stopping)
		if s.plugin.Clock != nil {
			s.plugin.Clock.stop()
		}
		// Side by side, so that the grace is over for calls of both sockets at once.
		framesEnded := make(chan struct{})
		go func() {
			s.frames.stop(s.grace)
			close(framesEnded)
		}()
		s.stopGRPC()
		<-framesEnded
		_ = s.listener.Close() // takes the socket away, if serving had not begun
		if s.metrics != nil {
			_ = s.metrics.Close()
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.grace)
		defer cancel()
		if err := s.tracing.Shutdown(ctx); err != nil {
			slog.Warn("spans were lost", "error", err)
		}
	})
}

func (s *Server) stopGRPC() {
	ended := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(s.grace):
		s.grpc.Stop()
	}
}

func (s *Server) reportReadiness(ready bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if ready {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(pb.SchedulingService_ServiceDesc.ServiceName, status)
}

// Serve serves the plugin until the context ends.
//
// Errors: as NewServer's and Start's; no address was given.
func Serve(ctx context.Context, plugin *Plugin, address string, options ...Option) error {
	if address == "" {
		address = os.Getenv("BERTH_PLUGIN_ADDRESS")
	}
	if address == "" {
		return errors.New("no address: give one, or set BERTH_PLUGIN_ADDRESS")
	}
	defer spareCollections().stop()
	server, err := NewServer(plugin, address, options...)
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	<-ctx.Done()
	slog.Info("stopping", "plugin", plugin.Name)
	server.Stop()
	return nil
}

// besides answers a gRPC call that is about no attempt, in its turn.
func besides[R any](
	ctx context.Context, server *Server, name string, function func(context.Context) (R, error),
) (R, error) {
	here := server.session.line.place()
	response, err := inTurn(ctx, server, here, name, metadataCarrier(ctx), function)
	return response, asStatus(ctx, err)
}

// inTurn answers a call that is about no attempt, within a span of its own.
func inTurn[R any](
	ctx context.Context, server *Server, here *place, name string, carrier traceCarrier,
	function func(context.Context) (R, error),
) (response R, err error) {
	started := time.Now()
	ctx, span := server.tracing.span(ctx, server.plugin.Name+"/"+name, carrier)
	defer func() {
		here.leave()
		endSpan(span, err)
		server.session.meter.answered(name, err, time.Since(started))
	}()
	if err = here.enter(ctx); err != nil {
		return response, fmt.Errorf("%s waited for the calls before it: %w", name, err)
	}
	return function(ctx)
}
