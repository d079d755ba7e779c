"""GPU nodes and pods in one line each."""

from berth_gpu_share.contract import COUNT, DEVICES, MILLI, MODEL, MODELS, RESOURCE
from berth_sdk.testing import make_node, make_pod


def gpu_node(name, count=2, model="V100M16", cpu="64"):
    labels = {COUNT: str(count), MODEL: model} if count else {}
    resources = {"cpu": cpu, "memory": "256Gi", "pods": "110", **({RESOURCE: 1000 * count} if count else {})}
    return make_node(name, allocatable=resources, labels=labels)


def gpu_pod(name, milli=1000, *, count=1, models=None, devices=None, cpu="1"):
    notes = {COUNT: str(count), MILLI: str(milli)}
    notes |= {MODELS: models} if models else {}
    notes |= {DEVICES: devices} if devices else {}
    requests = {"cpu": cpu, RESOURCE: milli * count}
    return make_pod(name, requests=requests, annotations=notes)
