package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

const (
	leaseName     = "scheduler"
	leaseDuration = 2 * time.Second
	renewDeadline = 1500 * time.Millisecond
	retryPeriod   = 100 * time.Millisecond
)

// candidate runs for the lease until it is stopped.
type candidate struct {
	leads chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
}

// campaign starts a candidate; one that does not release goes as if killed, and leaves its lease to run out.
func campaign(ctx context.Context, at *server, recorder record.EventRecorder, identity string, release bool) (*candidate, error) {
	lock, err := resourcelock.NewFromKubeconfig(
		resourcelock.LeasesResourceLock, at.namespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: recorder},
		rest.CopyConfig(at.config), renewDeadline,
	)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	found := &candidate{make(chan struct{}), stop, make(chan struct{})}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: release,
		Name:            identity,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(found.leads) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		stop()
		return nil, err
	}
	go func() {
		defer close(found.ended)
		elector.Run(ctx)
	}()
	return found, nil
}

func (c *candidate) led(ctx context.Context) error {
	select {
	case <-c.leads:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no leader: %w", ctx.Err())
	}
}

func elect(ctx context.Context, at *server) error {
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, at)
	broadcaster.StartRecordingToSink(ctx.Done())
	defer broadcaster.Shutdown()
	recorder := broadcaster.DeprecatedNewLegacyRecorder(schedulerName)
	leases, err := at.CoordinationV1().Leases(at.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer leases.Stop()
	var before *candidate
	for i, identity := range []string{"orderly", "killed", "survivor"} {
		next, err := campaign(ctx, at, recorder, identity, identity != "killed")
		if err != nil {
			return err
		}
		defer next.stop()
		if before != nil {
			before.stop()
			<-before.ended
		}
		if err := next.led(ctx); err != nil {
			return err
		}
		if err := renewed(ctx, at, identity, i); err != nil {
			return err
		}
		before = next
	}
	return announced(ctx, at, "orderly became leader", "orderly stopped leading", "killed became leader", "survivor became leader")
}

// renewed waits until the holder has renewed its lease, and says where the lease is not as it should be.
func renewed(ctx context.Context, at *server, identity string, transitions int) error {
	stream, err := at.CoordinationV1().Leases(at.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		lease := event.Object.(*coordinationv1.Lease)
		spec := lease.Spec
		if *spec.HolderIdentity != identity || !spec.RenewTime.After(spec.AcquireTime.Time) {
			continue
		}
		if int(*spec.LeaseTransitions) != transitions || *spec.LeaseDurationSeconds != int32(leaseDuration.Seconds()) {
			return fmt.Errorf("%s holds %+v", identity, spec)
		}
		return nil
	}
	return fmt.Errorf("%s did not renew: %w", identity, ctx.Err())
}

// announced waits until the events of the lease say these things.
func announced(ctx context.Context, at *server, texts ...string) error {
	stream, err := at.CoreV1().Events(at.namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=Lease,involvedObject.name=" + leaseName,
	})
	if err != nil {
		return err
	}
	defer stream.Stop()
	missing := map[string]bool{}
	for _, each := range texts {
		missing[each] = true
	}
	for event := range stream.ResultChan() {
		reported := event.Object.(*corev1.Event)
		for text := range missing {
			if strings.HasSuffix(reported.Message, text) && reported.Reason == "LeaderElection" {
				delete(missing, text)
			}
		}
		if len(missing) == 0 {
			return nil
		}
	}
	return fmt.Errorf("no events that say %v: %w", missing, ctx.Err())
}
