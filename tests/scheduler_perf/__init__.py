"""Upstream's scheduler_perf, played to Berth and to kube-scheduler as processes on one API server.

    tree -> workloads -> operations -> playing (nodes, pods, objects, devices) -> collecting -> report

The YAML is upstream's folder test/integration/scheduler_perf (Kubernetes v1.36 or later), given by the user
and read as it is. What each operation does follows scheduler_perf.go, operations.go, executor.go, dra.go and
test/utils/runners.go of v1.36.2.
"""
