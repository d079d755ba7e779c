"""Berth: a kube-scheduler-compatible Kubernetes scheduler, extended by gRPC sidecars."""
