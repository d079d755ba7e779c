"""Traces of SimKube, as `skctl export` writes them.

Source: docs/ref/trace-files.md of acrlabs/simkube, format 2.
"""

import msgspec

BEGAN = 1_710_892_138
TRACKED = {
    "apps/v1.Deployment": {"podSpecTemplatePaths": ["/spec/template"]},
    "batch/v1.CronJob": {"trackLifecycle": True},
    "example.com/v1.Several": {"podSpecTemplatePaths": ["/spec/a", "/spec/b"]},
    "example.com/v1.Own": {"podSpecTemplatePaths": ["/spec/pod"]},
}


def template(cpu="1", labels=None):
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"creationTimestamp": None, "labels": labels or {"app": "a"}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def owner(kind, name, version="apps/v1", **spec):
    metadata = {"name": name, "namespace": "traced", "annotations": {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def deployment(replicas, strategy=None, **fields):
    return owner("Deployment", "web", replicas=replicas, template=template(**fields), strategy=strategy)


def a_pod(name):
    return owner("Pod", name, "v1", **template()["spec"])


def event(seconds, *applied, deleted=()):
    return {"ts": BEGAN + seconds, "applied_objs": list(applied), "deleted_objs": list(deleted)}


def trace(path, *events, lives=None, **fields):
    """A trace; `lives` are of pods by their owner's kind and name, in seconds after the beginning."""
    document = {
        "version": 2,
        "config": {"trackedObjects": TRACKED},
        "events": list(events),
        "index": {"apps/v1.Deployment": {"traced/web": 2**64 - 1}},
        "pod_lifecycles": {key: {2**64 - 1: value} for key, value in (lives or {}).items()},
        **fields,
    }
    path.write_bytes(msgspec.msgpack.encode(document))
    return path


def finished(start, end):
    return {"Finished": [BEGAN + start, BEGAN + end]}
