package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

func recordEvents(ctx context.Context, at *server) error {
	pods, err := at.createPods(ctx, "noted")
	if err != nil {
		return err
	}
	stream, err := at.EventsV1().Events(at.namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer stream.Stop()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: at.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, schedulerName)
	for i := range 2 {
		note := "0/%d nodes are available"
		recorder.Eventf(pods[0], nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", note, i+1)
		event, ok := (<-stream.ResultChan()).Object.(*eventsv1.Event)
		if !ok || event.Regarding.UID != pods[0].UID || event.Note != "0/1 nodes are available" {
			return fmt.Errorf("event %+v", event)
		}
		if event.ReportingController != schedulerName || event.Action != "Scheduling" || event.EventTime.IsZero() {
			return fmt.Errorf("event %+v", event)
		}
		if i == 0 != (event.Series == nil) || event.Series != nil && event.Series.Count != 2 {
			return fmt.Errorf("after %d times: %+v", i+1, event.Series)
		}
	}
	return readAsCore(ctx, at)
}

// readAsCore has the event as kubectl reads it.
func readAsCore(ctx context.Context, at *server) error {
	list, err := at.CoreV1().Events(at.namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.name=noted,reason=FailedScheduling,type=Warning",
	})
	if err != nil {
		return err
	}
	if len(list.Items) != 1 || list.Items[0].Message != "0/1 nodes are available" || list.Items[0].Series.Count != 2 {
		return fmt.Errorf("as v1: %+v", list.Items)
	}
	return nil
}
