"""Resources for the operator's tests, and an API that serves their kinds."""

from berth.operator.definitions import plugin_definition, scheduler_definition
from tests.unit.sandbox.conftest import Server

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCHEDULERS = "/apis/berth.dev/v1alpha1/namespaces/default/schedulers"
PLUGINS = "/apis/berth.dev/v1alpha1/namespaces/default/schedulerplugins"


def serving():
    """An API that serves Scheduler and SchedulerPlugin."""
    server = Server()
    for definition in (scheduler_definition(), plugin_definition()):
        status, answer = server.post(CRDS, definition)
        assert 201 == status, answer
    return server


def scheduler(name="main", **spec):
    """A Scheduler with one profile."""
    spec.setdefault("profiles", [{"schedulerName": "packing"}])
    return _document("Scheduler", name, spec)


def plugin(name="gpu-share", **spec):
    """A SchedulerPlugin that is a sidecar."""
    if "address" not in spec:
        spec.setdefault("image", "berth/gpu-share:test")
    return _document(
        "SchedulerPlugin", name, {key: value for key, value in spec.items() if value is not None}
    )


def _document(kind, name, spec):
    return {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
