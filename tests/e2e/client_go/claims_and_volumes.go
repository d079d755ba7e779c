package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const selectedNode = "volume.kubernetes.io/selected-node"

func bindVolumes(ctx context.Context, at *server) error {
	claims, volumes := at.CoreV1().PersistentVolumeClaims(at.namespace), at.CoreV1().PersistentVolumes()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: once, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	volume, err := volumes.Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: once,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	stale := volume.DeepCopy()
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
		UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
	bound, err := volumes.Update(ctx, volume, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if *bound.Spec.ClaimRef != *volume.Spec.ClaimRef || bound.ResourceVersion == stale.ResourceVersion {
		return fmt.Errorf("volume: %+v", bound)
	}
	if _, err := volumes.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an update of an older volume: %w", err)
	}
	claim.Annotations = map[string]string{selectedNode: "node"}
	selected, err := claims.Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if _, err := claims.Update(ctx, claim, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an update of an older claim: %w", err)
	}
	if selected.Annotations[selectedNode] != "node" {
		return fmt.Errorf("claim: %+v", selected)
	}
	return nil
}

func allocate(ctx context.Context, at *server) error {
	pods, err := at.createPods(ctx, "user")
	if err != nil {
		return err
	}
	claims := at.ResourceV1().ResourceClaims(at.namespace)
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}
	claim, err := claims.Create(ctx, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "gpu-"},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: exactly}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	stale := claim.DeepCopy()
	claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
	if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	device := resourcev1.DeviceRequestAllocationResult{
		Request: "gpu", Driver: "gpu.example.com", Pool: "node", Device: "gpu-0",
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{device}},
	}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{
		{Resource: "pods", Name: pods[0].Name, UID: pods[0].UID},
	}
	allocated, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	results := allocated.Status.Allocation.Devices.Results
	if len(results) != 1 || results[0].Device != "gpu-0" || allocated.Status.ReservedFor[0] != claim.Status.ReservedFor[0] {
		return fmt.Errorf("allocated %+v", allocated.Status)
	}
	if _, err := claims.UpdateStatus(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("an allocation of an older claim: %w", err)
	}
	return nil
}
