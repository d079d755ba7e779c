package main

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "berth.dev/same-label/pluginv1"
)

const readiness = "berth.plugin.v1.SchedulingService"

// session is what all services of the process share. Its fields are read and
// changed under its mutex.
type session struct {
	health *health.Server

	mutex sync.Mutex
	// The label that each profile's arguments name.
	labels map[string]string
	held   held
	// Numbers the Sync streams; the one opened last counts.
	streams int
	// Closed, and made anew, with each change.
	changes chan struct{}
}

func newSession() *session {
	s := &session{health: health.NewServer(), labels: map[string]string{}, changes: make(chan struct{})}
	s.changed()
	return s
}

// changed wakes the calls that wait for a generation, and reports whether calls
// can be answered.
func (s *session) changed() {
	ready := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if len(s.labels) > 0 && s.held.generation > 0 {
		ready = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(readiness, ready)
	close(s.changes)
	s.changes = make(chan struct{})
}

// enter returns with the mutex held, once the call can be answered from what is
// held; after an error it is not held.
func (s *session) enter(ctx context.Context, call *pb.Call) error {
	s.mutex.Lock()
	err := s.ready(ctx, call)
	if err != nil {
		s.mutex.Unlock()
	}
	return err
}

func (s *session) ready(ctx context.Context, call *pb.Call) error {
	if _, known := s.labels[call.GetProfile()]; !known {
		return precondition(ctx, "NOT_CONFIGURED", "the profile was not configured")
	}
	if err := s.takeOver(ctx, call); err != nil {
		return err
	}
	for s.held.epoch == call.Epoch && s.held.generation < call.Generation {
		changes := s.changes
		s.mutex.Unlock()
		select {
		case <-changes:
		case <-ctx.Done():
		}
		s.mutex.Lock()
		if ctx.Err() != nil {
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	switch {
	case s.held.generation == 0 || s.held.epoch != call.Epoch:
		return precondition(ctx, "NOT_SYNCED", "another epoch is held, or none")
	case call.Generation < s.held.indicesSince:
		return precondition(ctx, "GENERATION_GONE", "nodes have other indices now")
	}
	return nil
}

// takeOver takes the steps that the call brings. After a gap the stream will
// bring what is missing.
func (s *session) takeOver(ctx context.Context, call *pb.Call) error {
	if len(call.Deltas) == 0 || s.held.epoch != call.Epoch {
		return nil
	}
	defer s.changed()
	for _, delta := range call.Deltas {
		var wrong *refused
		if err := s.held.follow(delta); errors.As(err, &wrong) {
			if wrong.reason == pb.NackReason_NACK_REASON_GAP {
				return nil
			}
			s.held = held{}
			return precondition(ctx, "NOT_SYNCED", wrong.message)
		}
	}
	return nil
}

// precondition returns the error that says what the host has to do before it
// repeats the call.
func precondition(ctx context.Context, reason, message string) error {
	if err := grpc.SetTrailer(ctx, metadata.Pairs("berth-reason", reason)); err != nil {
		return err
	}
	return status.Error(codes.FailedPrecondition, message)
}
