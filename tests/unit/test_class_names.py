"""One public class name, one meaning: no two classes of core share a name but where a contract says so."""

import ast
from collections import defaultdict

from tests import sources

PROTOCOLS = {
    "EventRecorder": "framework/handle.py",
    "Nominator": "framework/handle.py",
    "PodInPreBind": "framework/handle.py",
    "PodsInPreBind": "framework/handle.py",
    "WaitingPod": "framework/handle.py",
    "WaitingPods": "framework/handle.py",
}
"""What plugins are given by their Handle, and the class behind it that implements just this protocol."""

UPSTREAM = {
    "NodeAffinity": "a field of core/v1 PodSpec, and a plugin",
    "NodeAffinityArgs": "arguments of kube-scheduler's plugin, and of the descheduler's",
    "NodeSelector": "a type of core/v1, as objects have it and as arguments of plugins do",
    "NodeSelectorTerm": "the same",
    "PluginConfig": "KubeSchedulerConfiguration's, and DeschedulerPolicy's",
    "PluginSet": "the same",
    "Plugins": "the same",
    "PreferredSchedulingTerm": "a type of core/v1, as objects have it and as arguments of plugins do",
    "Profile": "KubeSchedulerConfiguration's (KubeSchedulerProfile), and DeschedulerPolicy's",
    "TopologySpreadConstraint": "a type of core/v1, as objects have it and as arguments of plugins do",
}
"""Names that upstream gives two things which both are decoded here."""


def public_classes():
    """The files of each public class, by its name."""
    files = defaultdict(list)
    for name, path in sorted(sources.modules().items()):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(name)
    return files


def test_no_two_public_classes_share_a_name():
    shared = {name: files for name, files in public_classes().items() if len(files) > 1}

    assert {} == {name: files for name, files in shared.items() if name not in PROTOCOLS.keys() | UPSTREAM}
    assert PROTOCOLS.keys() | UPSTREAM.keys() == shared.keys()
    assert all(file in shared[name] and len(shared[name]) == 2 for name, file in PROTOCOLS.items())
