"""Berth: a kube-scheduler-compatible Kubernetes scheduler, extended by gRPC sidecars."""

from importlib.metadata import version

__version__ = version("berth-scheduler")
