"""A small tree in the form of upstream's."""

import yaml

POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec: {containers: [{name: c, image: "app:1"}]}
"""
CREATE_NODES = {"opcode": "createNodes", "countParam": "$nodes"}
CREATE_PODS = {
    "opcode": "createPods",
    "countParam": "$pods",
    "podTemplatePath": "pod.yaml",
    "collectMetrics": True,
}


def a_test(*operations, workload=None, **fields):
    """A test of one workload with two nodes and ten pods."""
    parameters = {"nodes": 2, "pods": 10}
    return {
        "name": "Basic",
        "labels": ["performance"],
        "workloadTemplate": list(operations or (CREATE_NODES, CREATE_PODS)),
        "workloads": [{"name": "2Nodes", "params": parameters, **(workload or {})}],
        **fields,
    }


def written(folder, *tests, topic="misc", **files):
    """The folder of a tree with these tests, and files beside them by name without .yaml."""
    place = folder / topic
    place.mkdir(parents=True)
    (place / "performance-config.yaml").write_text(yaml.safe_dump(list(tests)))
    for name, text in {"pod": POD, **files}.items():
        (place / f"{name}.yaml").write_text(text)
    return folder
