package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func evict(ctx context.Context, at *server) error {
	pods, err := at.createPods(ctx, "victim", "guarded")
	if err != nil {
		return err
	}
	if err := at.createNode(ctx, "crowded"); err != nil {
		return err
	}
	for _, each := range pods {
		if err := at.bindOnce(ctx, each, "crowded"); err != nil {
			return err
		}
	}
	if err := deleteVictim(ctx, at, pods[0]); err != nil {
		return err
	}
	return evictGuarded(ctx, at, pods[1])
}

// deleteVictim marks a pod as preempted and deletes it, the one that is meant and no other of that name.
func deleteVictim(ctx context.Context, at *server, victim *corev1.Pod) error {
	wanted := victim.Status.DeepCopy()
	wanted.Conditions = append(wanted.Conditions, corev1.PodCondition{
		Type:               corev1.DisruptionTarget,
		Status:             corev1.ConditionTrue,
		Reason:             corev1.PodReasonPreemptionByScheduler,
		Message:            schedulerName + ": preempting to accommodate a higher priority pod",
		LastTransitionTime: metav1.Now().Rfc3339Copy(),
	})
	reported, err := at.patchStatus(ctx, victim, wanted)
	if err != nil {
		return err
	}
	if conditionOf(reported, corev1.DisruptionTarget) == nil || conditionOf(reported, corev1.PodScheduled) == nil {
		return fmt.Errorf("the patch replaced what it should have merged: %+v", reported.Status.Conditions)
	}
	client := at.CoreV1().Pods(at.namespace)
	other, grace := types.UID("other"), int64(30)
	err = client.Delete(ctx, victim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("a deletion of another pod: %w", err)
	}
	stream, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: reported.ResourceVersion})
	if err != nil {
		return err
	}
	defer stream.Stop()
	own := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &victim.UID}, GracePeriodSeconds: &grace}
	if err := client.Delete(ctx, victim.Name, own); err != nil {
		return err
	}
	terminating := false
	for event := range stream.ResultChan() {
		pod := event.Object.(*corev1.Pod)
		if pod.Name != victim.Name {
			continue
		}
		if event.Type == "DELETED" {
			if !terminating {
				return fmt.Errorf("%s went without its grace", pod.Name)
			}
			return nil
		}
		terminating = terminating || pod.DeletionTimestamp != nil
	}
	return fmt.Errorf("%s did not go: %w", victim.Name, ctx.Err())
}

// evictGuarded asks for an eviction that the pod's budget does not allow, and again when it does.
func evictGuarded(ctx context.Context, at *server, guarded *corev1.Pod) error {
	labels := map[string]string{"app": "guarded"}
	patch := []byte(`{"metadata": {"labels": {"app": "guarded"}}}`)
	client := at.CoreV1().Pods(at.namespace)
	if _, err := client.Patch(ctx, guarded.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	one := intstr.FromInt32(1)
	budgets := at.PolicyV1().PodDisruptionBudgets(at.namespace)
	budget, err := budgets.Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := running(ctx, at, guarded.Name); err != nil {
		return err
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: guarded.Name}}
	if err := at.PolicyV1().Evictions(at.namespace).Evict(ctx, eviction); !apierrors.IsTooManyRequests(err) {
		return fmt.Errorf("an eviction against the budget: %w", err)
	}
	budget.Status.ObservedGeneration = budget.Generation
	budget.Status.DisruptionsAllowed = 1
	if _, err := budgets.UpdateStatus(ctx, budget, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return at.PolicyV1().Evictions(at.namespace).Evict(ctx, eviction)
}

func running(ctx context.Context, at *server, name string) error {
	stream, err := at.CoreV1().Pods(at.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if event.Object.(*corev1.Pod).Status.Phase == corev1.PodRunning {
			return nil
		}
	}
	return fmt.Errorf("%s does not run: %w", name, ctx.Err())
}
