"""Small files, as one writes them first: each command answers right, or says what to write."""

import json
from textwrap import indent
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.framework.pluralize import pluralize

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n0}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p0}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 0
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: []
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
"""
AS_JSON = (
    '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "NAME"}, '
    '"status": {"allocatable": {"cpu": "4", "pods": "110"}}}'
)


def together(*documents):
    return "---\n".join(documents)


def asks(cpu):
    """A node, and a pod that requests that much CPU, as YAML has it."""
    return together(NODE, POD.replace('cpu: "1"', f"cpu: {cpu}"))


def on(node):
    """A node, and a pod on the node of that name."""
    return together(NODE, POD.replace("spec: {", f"spec: {{nodeName: {node}, "))


def listed(*documents):
    items = ("- " + indent(each, "  ")[2:] for each in documents)
    return "apiVersion: v1\nkind: List\nitems:\n" + "".join(items)


class Found(NamedTuple):
    """What a file comes to: pods that get a node and that do not, how many more fit, what a snapshot has."""

    placed: int = 0
    pending: int = 0
    fit: int = 4
    objects: int = 1
    left_out: dict[str, int] = {}


ALONE = Found(1, 0, 4, 2)
"""A node, and a pod of one CPU that waits and is not counted by `fill`."""
RIGHT = {
    "one node": (NODE, Found()),
    "two nodes": (together(NODE, NODE.replace("n0", "n1")), Found(fit=8, objects=2)),
    "a pod alone": (POD, Found(0, 1, 0, 1)),
    "several documents": (together("", NODE, POD, ""), ALONE),
    "a List": (listed(NODE, POD), ALONE),
    "a List in a List": (listed(listed(NODE), POD), ALONE),
    "CRLF": (together(NODE, POD).replace("\n", "\r\n"), ALONE),
    "a byte order mark": ("\ufeff" + together(NODE, POD), ALONE),
    "comments": ("# a node\n" + NODE + "# and no more\n", Found()),
    "JSON in a YAML file": (AS_JSON.replace("NAME", "n0"), Found()),
    "JSON, an object a line": (
        "\n".join(AS_JSON.replace("NAME", name) for name in ("n0", "n1")),
        Found(fit=8, objects=2),
    ),
    "a Deployment with 0 replicas": (together(NODE, DEPLOYMENT), Found(left_out={"Deployment": 1})),
    "an unknown kind": (together(NODE, WIDGET), Found(left_out={"Widget": 1})),
    "no node and no pod": (WIDGET, Found(0, 0, 0, 0, {"Widget": 1})),
    "a node without status": (
        together(NODE.partition("status")[0], POD),
        Found(0, 1, 0, 2),
    ),
    "a node with its capacity alone": (together(NODE.replace("allocatable", "capacity"), POD), ALONE),
    "a node without room for pods": (together(NODE.replace(', pods: "110"', ""), POD), Found(0, 1, 0, 2)),
    "a pod on the node": (on("n0"), Found(0, 0, 3, 2)),
    "a pod on a node that is not there": (
        on("gone"),
        Found(objects=2, left_out={"Pod on a node that is not in the input": 1}),
    ),
    "a finished pod": (
        together(NODE, POD + "status: {phase: Succeeded}\n"),
        Found(left_out={"finished Pod": 1}),
    ),
    "a pod without requests": (together(NODE, POD.replace(', resources: {requests: {cpu: "1"}}', "")), ALONE),
    "another scheduler's pod": (
        together(NODE, POD.replace("spec: {", "spec: {schedulerName: other, ")),
        Found(0, 1, 4, 2),
    ),
    **{
        f"cpu: {cpu}": (asks(cpu), ALONE)
        for cpu in ('"4"', "4", '"+1"', "0.5", '".5"', '"4."', '"400m"', '"1n"', '"1e0"', '"4E0"', '"0.001k"')
    },
    **{
        f"cpu: {cpu}": (asks(cpu), Found(0, 1, 4, 2))
        for cpu in ('"5"', '"4001m"', '"4.0001"', '"1k"', '"1Ki"', '"1E"', '"1e3"', '"9999999999999999999"')
    },
}
QUANTITY = "document 2: spec.containers[0].resources.requests.cpu: found "
ONE = "a quantity such as 500m, 2 or 16Gi is expected"
NO_OBJECT = "no Kubernetes object in it; give a file that is whole and holds some"
WRONG = {
    "an empty file": ("", NO_OBJECT),
    "a comment only": ("# nothing\n", NO_OBJECT),
    "an empty List": ("apiVersion: v1\nkind: List\nitems: []\n", NO_OBJECT),
    "a List without items": ("apiVersion: v1\nkind: List\n", "items: found nothing; a list of objects is"),
    "a text": ("hello\n", "document: found 'hello'; an object has apiVersion, kind and metadata"),
    "UTF-16": (NODE.encode("utf-16"), "text: found byte 0xff in line 1; save the file as UTF-8"),
    "a wrong apiVersion": (
        NODE.replace("v1", "v2"),
        "Node n0: apiVersion: found 'v2'; give the object as v1",
    ),
    "no apiVersion": (
        NODE.partition("\n")[2],
        "apiVersion: found nothing; say the object's version, such as v1",
    ),
    "a kind in lower case": (NODE.replace("Node", "node"), "node n0: kind: found 'node'; write Node"),
    "no name": (
        NODE.replace("name: n0", "labels: {a: b}"),
        "metadata.name: found nothing; give the object a",
    ),
    "a number as name": (
        NODE.replace("n0", "5"),
        "metadata.name: found 5; a string is expected; put it in quotes",
    ),
    "a node's name twice": (together(NODE, NODE), "document 2: Node n0: metadata.name: found a second time"),
    "a pod's name twice": (
        together(NODE, POD, POD),
        "document 3: Pod default/p0: metadata.name: found a second",
    ),
    "a key twice": (NODE + "metadata: {}\n", "found the key 'metadata' a second time, in line 5; keep one"),
    "no containers": (POD.partition("spec")[0] + "spec: {}\n", "spec.containers: found nothing; a pod needs"),
    "a priority class that is not there": (
        POD.replace("spec: {", "spec: {priorityClassName: gone, "),
        "spec.priorityClassName: found 'gone', of no class; add the PriorityClass to the input, or set",
    ),
    "YAML that is cut off": ("apiVersion: v1\nkind: [Node\n", "found no YAML in line 3, column 1"),
    "JSON that is cut off": ('{"apiVersion": "v1"', "found no JSON in line 1, column 20"),
    **{
        f"cpu: {cpu}": (asks(cpu), f"{QUANTITY}{found}; {ONE}")
        for cpu, found in {
            '"1K"': "'1K'",
            '"1 "': "'1 '",
            '""': "''",
            "null": "nothing",
            "true": "True",
            '"0x10"': "'0x10'",
        }.items()
    },
    "cpu: -1": (asks("-1"), f"{QUANTITY}'-1'; must be greater than or equal to 0"),
}


class Commands:
    """Runs the commands on one file."""

    def __init__(self, folder, contents):
        self.file, self.copy, self.policy = folder / "in.yaml", folder / "copy.yaml", folder / "policy.yaml"
        self.file.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        self.copy.write_text(POD.replace("p0", "copy"))
        self.policy.write_text(POLICY)
        self.snapshot = folder / "out.json"

    def arguments(self):
        """The commands that take a cluster."""
        file = str(self.file)
        return {
            "run": ["simulate", file],
            "fill": ["simulate", "fill", str(self.copy), file, "--most", "100"],
            "compare": ["simulate", "compare", "default", "--input", file],
            "deschedule": ["deschedule", "--policy", str(self.policy), file],
            "snapshot": ["snapshot", file, "-o", str(self.snapshot)],
        }

    def run(self, name, *more):
        return CliRunner().invoke(main, [*self.arguments()[name], *more])

    def found(self, name):
        """The command's exit code and its answer."""
        done = self.run(name, "-o", "json")
        return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize(("contents", "expected"), RIGHT.values(), ids=RIGHT)
def test_a_right_answer(tmp_path, contents, expected):
    """All commands read the file alike, and each says what it left out."""
    commands = Commands(tmp_path, contents)

    code, run = commands.found("run")
    assert (3 if expected.pending else 0, expected.placed) == (code, len(run["placements"]))
    assert (expected.pending, expected.left_out) == (len(run["pending"]), run.get("leftOut", {}))
    code, fill = commands.found("fill")
    assert (3, expected.fit, expected.left_out) == (code, fill["count"], fill["leftOut"])
    code, compared = commands.found("compare")
    (row,) = compared["variants"]
    assert (0, expected.placed, expected.pending) == (code, row["placed"], row["pending"])
    assert expected.left_out == compared["leftOut"]
    code, plan = commands.found("deschedule")
    assert (0, run["nodes"], []) == (code, plan["nodes"], plan["moves"])
    snapshot = commands.run("snapshot")
    assert (0, pluralize(expected.objects, "object")) == (
        snapshot.exit_code,
        snapshot.stderr.splitlines()[-1],
    )


@pytest.mark.parametrize(("contents", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_file(tmp_path, contents, said):
    """Each command ends with 2, and says the same: the file, the place, and what to write."""
    commands = Commands(tmp_path, contents)

    done = [commands.run(name) for name in commands.arguments()]

    assert {(2, "")} == {(each.exit_code, each.stdout) for each in done}
    assert 1 == len({each.stderr for each in done})
    assert str(commands.file) in done[0].stderr
    assert said in done[0].stderr
    assert not commands.snapshot.exists()


@pytest.mark.parametrize("contents", [text for text, _ in (*RIGHT.values(), *WRONG.values())])
def test_none_is_a_recording(tmp_path, contents):
    """A file of objects is no recording, and it is said how one is made."""
    commands = Commands(tmp_path, contents)

    done = CliRunner().invoke(main, ["simulate", "replay", str(commands.file)])

    assert 2 == done.exit_code
    assert "in.yaml is no recording: make one with `berth scheduler --record-to DIR`" in done.stderr


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (NODE, "no Pod in it but Node; give the pod to be copied as a Pod of its own"),
        (DEPLOYMENT, "no Pod in it but Deployment; give the pod to be copied as a Pod of its own"),
        ("", "no Pod in it; give the pod to be copied as a Pod of its own"),
    ],
)
def test_no_pod_to_copy(tmp_path, contents, said):
    """What is in the file in the place of a pod is named."""
    commands = Commands(tmp_path, NODE)
    commands.copy.write_text(contents)

    done = commands.run("fill")

    assert (2, True) == (done.exit_code, said in done.stderr), done.stderr


def test_a_copy_is_a_new_pod(tmp_path):
    """Where the pod was, and that it has finished, is none of its copies' business."""
    commands = Commands(tmp_path, NODE)
    commands.copy.write_text(POD.replace("spec: {", "spec: {nodeName: n0, ") + "status: {phase: Succeeded}\n")

    assert 4 == commands.found("fill")[1]["count"]
