package main

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	corelisters "k8s.io/client-go/listers/core/v1"
)

const (
	schedulerName = "client-go"
	podsToBind    = 30
	podsANode     = 20
)

// scheduleAll binds pods to the first node with room; there is room for all when the second node has come.
func scheduleAll(ctx context.Context, at *server) error {
	factory := schedulerInformers(at)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	seenPods, err := follow(pods.Informer())
	if err != nil {
		return err
	}
	seenNodes, err := follow(nodes.Informer())
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if err := synced(ctx, pods.Informer(), nodes.Informer()); err != nil {
		return err
	}
	var names []string
	for i := range podsToBind {
		names = append(names, fmt.Sprintf("pod-%d", i))
	}
	if err := at.createNode(ctx, "small"); err != nil {
		return err
	}
	if _, err := seenNodes.await(ctx, "added", "small", anything); err != nil {
		return err
	}
	waiting, err := at.createPods(ctx, names...)
	if err != nil {
		return err
	}
	bound := map[string]int{}
	for round := range 2 {
		if round == 1 {
			if err := at.createNode(ctx, "second"); err != nil {
				return err
			}
			if _, err := seenNodes.await(ctx, "added", "second", anything); err != nil {
				return err
			}
		}
		if waiting, err = at.scheduleEach(ctx, waiting, nodes.Lister(), seenPods, bound); err != nil {
			return err
		}
		if want := []int{podsToBind - podsANode, 0}[round]; len(waiting) != want {
			return fmt.Errorf("%d pods wait after round %d, not %d", len(waiting), round, want)
		}
	}
	return at.runs(ctx, names, seenPods)
}

func (s *server) createNode(ctx context.Context, name string) error {
	room := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(podsANode, resource.DecimalSI)}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"claim": s.namespace}}}
	created, err := s.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Status.Capacity, created.Status.Allocatable = room, room
	_, err = s.CoreV1().Nodes().UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// scheduleEach has each pod bound, or rejected on every node; it gives those that wait.
func (s *server) scheduleEach(
	ctx context.Context, pods []*corev1.Pod, nodes corelisters.NodeLister, seen *witness, bound map[string]int,
) ([]*corev1.Pod, error) {
	var waiting []*corev1.Pod
	for _, pod := range pods {
		key := pod.Namespace + "/" + pod.Name
		if _, err := seen.await(ctx, "added", key, anything); err != nil {
			return nil, err
		}
		node, err := firstFit(nodes, bound, s.namespace)
		if err != nil {
			return nil, err
		}
		if node == "" {
			reported, err := s.reject(ctx, pod)
			if err != nil {
				return nil, err
			}
			waiting = append(waiting, reported)
			continue
		}
		if err := s.bindOnce(ctx, pod, node); err != nil {
			return nil, err
		}
		bound[node]++
	}
	return waiting, nil
}

func firstFit(lister corelisters.NodeLister, bound map[string]int, claim string) (string, error) {
	for _, name := range []string{"small", "second"} {
		node, err := lister.Get(name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if node.Labels["claim"] == claim && bound[name] < podsANode {
			return name, nil
		}
	}
	return "", nil
}

// bindOnce binds a pod, and has a second binding and one of an earlier pod of that name refused.
func (s *server) bindOnce(ctx context.Context, pod *corev1.Pod, node string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	earlier := binding.DeepCopy()
	earlier.UID = "earlier"
	pods := s.CoreV1().Pods(pod.Namespace)
	if err := pods.Bind(ctx, earlier, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a binding of another pod: %w", err)
	}
	if err := pods.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := pods.Bind(ctx, binding, metav1.CreateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a second binding: %w", err)
	}
	return nil
}

// reject writes the condition and the nomination of a pod that fits nowhere, as the patch of its status.
func (s *server) reject(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	wanted := pod.Status.DeepCopy()
	wanted.NominatedNodeName = "small"
	wanted.Conditions = append(wanted.Conditions, corev1.PodCondition{
		Type:               corev1.PodScheduled,
		Status:             corev1.ConditionFalse,
		Reason:             corev1.PodReasonUnschedulable,
		Message:            "0/1 nodes are available: 1 Too many pods.",
		LastTransitionTime: metav1.Now().Rfc3339Copy(),
	})
	reported, err := s.patchStatus(ctx, pod, wanted)
	if err != nil {
		return nil, err
	}
	if condition := conditionOf(reported, corev1.PodScheduled); condition == nil || condition.Reason != corev1.PodReasonUnschedulable {
		return nil, fmt.Errorf("%s: %+v", pod.Name, reported.Status)
	}
	if reported.Status.NominatedNodeName != "small" || reported.Status.Phase != corev1.PodPending {
		return nil, fmt.Errorf("%s: %+v", pod.Name, reported.Status)
	}
	return reported, nil
}

// patchStatus sends what differs between the status that is held and the one that is wanted.
func (s *server) patchStatus(ctx context.Context, pod *corev1.Pod, wanted *corev1.PodStatus) (*corev1.Pod, error) {
	held, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return nil, err
	}
	new, err := json.Marshal(corev1.Pod{Status: *wanted})
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(held, new, &corev1.Pod{})
	if err != nil {
		return nil, err
	}
	return s.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// runs waits until the fake kubelets have every pod running, bound and no longer nominated.
func (s *server) runs(ctx context.Context, names []string, seen *witness) error {
	for _, name := range names {
		object, err := seen.await(ctx, "updated", s.namespace+"/"+name, func(object any) bool {
			return object.(*corev1.Pod).Status.Phase == corev1.PodRunning
		})
		if err != nil {
			return err
		}
		pod := object.(*corev1.Pod)
		scheduled := conditionOf(pod, corev1.PodScheduled)
		if pod.Spec.NodeName == "" || pod.Status.NominatedNodeName != "" || scheduled.Status != corev1.ConditionTrue {
			return fmt.Errorf("%s: node %q, %+v", name, pod.Spec.NodeName, pod.Status)
		}
	}
	return nil
}
