package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: schedulerName,
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/app:1"}},
		},
	}
}

func (s *server) createPods(ctx context.Context, names ...string) ([]*corev1.Pod, error) {
	var created []*corev1.Pod
	for _, name := range names {
		pod, err := s.CoreV1().Pods(s.namespace).Create(ctx, newPod(name), metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		created = append(created, pod)
	}
	return created, nil
}

func finishedPodsLeave(ctx context.Context, at *server) error {
	factory := schedulerInformers(at)
	informer := factory.Core().V1().Pods().Informer()
	seen, err := follow(informer)
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if err := synced(ctx, informer); err != nil {
		return err
	}
	for name, phase := range map[string]corev1.PodPhase{"done": corev1.PodSucceeded, "broken": corev1.PodFailed} {
		pods, err := at.createPods(ctx, name)
		if err != nil {
			return err
		}
		key := at.namespace + "/" + name
		if _, err := seen.await(ctx, "added", key, anything); err != nil {
			return err
		}
		pods[0].Status.Phase = phase
		if _, err := at.CoreV1().Pods(at.namespace).UpdateStatus(ctx, pods[0], metav1.UpdateOptions{}); err != nil {
			return err
		}
		if _, err := seen.await(ctx, "deleted", key, anything); err != nil {
			return err
		}
	}
	return nil
}

func bookmarksAreTyped(ctx context.Context, at *server) error {
	if _, err := at.createPods(ctx, "first", "second"); err != nil {
		return err
	}
	// A bookmark comes two seconds before the time is up.
	yes, seconds := true, int64(3)
	stream, err := at.CoreV1().Pods(at.namespace).Watch(ctx, metav1.ListOptions{
		AllowWatchBookmarks:  true,
		SendInitialEvents:    &yes,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		TimeoutSeconds:       &seconds,
	})
	if err != nil {
		return err
	}
	defer stream.Stop()
	var reported []string
	for event := range stream.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("%s of a %T", event.Type, event.Object)
		}
		if event.Type == watch.Bookmark && pod.ResourceVersion == "" {
			return errors.New("a bookmark without resourceVersion")
		}
		reported = append(reported, string(event.Type)+" "+pod.Name+pod.Annotations[metav1.InitialEventsAnnotationKey])
	}
	if want := "[ADDED first ADDED second BOOKMARK true BOOKMARK ]"; fmt.Sprint(reported) != want {
		return fmt.Errorf("reported %v, not %s", reported, want)
	}
	return nil
}

func pagesAreConsistent(ctx context.Context, at *server) error {
	if _, err := at.createPods(ctx, "a", "b", "c", "d", "e"); err != nil {
		return err
	}
	pods := at.CoreV1().Pods(at.namespace)
	pages := 0
	reader := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if pages++; pages == 2 {
			// What goes while the list is read was there as it began.
			if err := pods.Delete(ctx, "d", metav1.DeleteOptions{}); err != nil {
				return nil, err
			}
		}
		return pods.List(ctx, options)
	})
	reader.PageSize = 2
	list, paginated, err := reader.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if length := meta.LenList(list); length != 5 || pages != 3 || !paginated {
		return fmt.Errorf("%d pods in %d pages", length, pages)
	}
	return nil
}

// reconnect is notified on standard input when the server has gone, lost the pod called "lost", and come back.
func reconnect(watchList bool) func(context.Context, *server) error {
	return func(ctx context.Context, at *server) error {
		before, err := at.createPods(ctx, "lost", "kept")
		if err != nil {
			return err
		}
		factory := schedulerInformers(at)
		informer := factory.Core().V1().Pods().Informer()
		seen, err := follow(informer)
		if err != nil {
			return err
		}
		factory.StartWithContext(ctx)
		if err := synced(ctx, informer); err != nil {
			return err
		}
		fmt.Println("synced")
		if !bufio.NewScanner(os.Stdin).Scan() {
			return errors.New("no watch noticed that the server is back")
		}
		object, err := seen.await(ctx, "deleted", at.namespace+"/lost", anything)
		if err != nil {
			return err
		}
		if _, unobserved := object.(cache.DeletedFinalStateUnknown); !unobserved {
			return errors.New("the deletion was watched, so the server was never away")
		}
		if _, err := at.createPods(ctx, "new"); err != nil {
			return err
		}
		if _, err := seen.await(ctx, "added", at.namespace+"/new", anything); err != nil {
			return err
		}
		if err := at.caughtUp(watchList); err != nil {
			return err
		}
		return at.tooOld(ctx, before[0].ResourceVersion)
	}
}

// caughtUp says whether what was missed came by a second stream of all objects, or by a second list.
func (s *server) caughtUp(watchList bool) error {
	full := 0
	for _, each := range s.asked.matching("GET", "/api/v1/pods", "") {
		streamed := strings.Contains(each.query, "sendInitialEvents=true")
		listed := !strings.Contains(each.query, "watch=true")
		if each.status == http.StatusOK && (watchList && streamed || !watchList && listed) {
			full++
		}
	}
	if full != 2 {
		return fmt.Errorf("asked %+v", s.asked.matching("GET", "/api/v1/pods", ""))
	}
	return nil
}

// tooOld has a watch from before the restart refused in the words that informers understand.
func (s *server) tooOld(ctx context.Context, version string) error {
	_, err := s.CoreV1().Pods(s.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if !apierrors.IsResourceExpired(err) {
		return fmt.Errorf("a watch from revision %s: %w", version, err)
	}
	return nil
}
