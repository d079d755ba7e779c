"""Kubernetes files: what is taken, and what is refused with file, document, field and remedy."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.demo.dataset import BrokenDocumentError, ManifestFiles, UnreadableSourceError
from berth.demo.dataset.documents import read_documents

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, memory: 8Gi}}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p1}\nspec: {containers: [{name: c, image: i}]}\n"


@pytest.fixture
def load(tmp_path):
    def load(text, name="objects.yaml"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return ManifestFiles([tmp_path / name]).load()

    return load


def test_several_documents(load):
    """Documents are sorted into nodes, pods and others, and keep their order."""
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"
    objects = load(f"---\n{POD}---\n# nothing here\n---\n{NODE}---\n{space}")

    assert [o["kind"] for o in objects.in_creation_order()] == ["Namespace", "Node", "Pod"]
    assert (len(objects.nodes), len(objects.pods), len(objects.others)) == (1, 1, 1)


def test_lists(load):
    """Lists are taken apart; a typed list says the kind for its items."""
    items = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n1"}}]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [items, {**items, "items": None}]}
    objects = load(json.dumps(outer), "all.json")

    assert objects.nodes == [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}]


def test_what_a_server_printed(load):
    """Fields that only a server sets are left out, the status is kept, and dates stay text."""
    text = NODE.replace(
        "{name: n1}", "{name: n1, uid: u, resourceVersion: '5', creationTimestamp: 2026-01-01}"
    )
    node = load(text + "spec: {podCIDR: 2026-01-02T03:04:05Z}\n").nodes[0]

    assert node["metadata"] == {"name": "n1"}
    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi"}
    assert node["spec"]["podCIDR"] == "2026-01-02T03:04:05Z"


def test_anchors_are_copies(load):
    """What a YAML anchor repeats is repeated, not shared; a merged key is no repeated key."""
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p1, labels: &l {a: x}, annotations: {<<: *l, b: y}}\n"
        "spec: {nodeSelector: *l, containers: [{name: c}]}\n"
    )
    pod = load(text).pods[0]

    assert pod["metadata"]["annotations"] == {"a": "x", "b": "y"}
    assert pod["metadata"]["labels"] == pod["spec"]["nodeSelector"]
    assert pod["metadata"]["labels"] is not pod["spec"]["nodeSelector"]


def test_folder(tmp_path):
    """A folder's files are read in the order of their names, other files and folders are not."""
    (tmp_path / "b.yml").write_text(POD.replace("p1", "second"))
    (tmp_path / "a.json").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "first"},
                "spec": {"containers": [{"name": "c"}]},
            }
        )
    )
    (tmp_path / "notes.txt").write_text("not: [read")
    (tmp_path / "deeper.yaml").mkdir()

    assert [p["metadata"]["name"] for p in ManifestFiles([tmp_path]).load().pods] == ["first", "second"]


def pod(metadata="{name: p1}", spec="{containers: [{name: c}]}"):
    return f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nspec: {spec}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("a: [b\n", "document 1: text: found no YAML in line 2, column 1", id="syntax"),
        pytest.param(
            POD + "---\na: b: c\n", "document 2: text: found no YAML in line 6", id="syntax, second"
        ),
        pytest.param("\tkind: Pod\n", "document 1: text: found no YAML in line 1", id="tab"),
        pytest.param(
            "a: 1\nb: 2\na: 3\n", "text: found the key 'a' a second time, in line 3", id="repeated key"
        ),
        pytest.param("a: *b\n", "document 1: text: found no YAML in line 1", id="unknown anchor"),
        pytest.param("a: &a [*a]\n", "found more than 100 levels", id="anchor inside itself"),
        pytest.param("a: !!python/name:os.system x\n", "found no YAML in line 1", id="foreign tag"),
        pytest.param(
            b"a: \xff\n", "document 1: text: found byte 0xff in line 1; save the file as UTF-8", id="UTF-8"
        ),
        pytest.param("a: \x00\n", "document 1: text: found no YAML", id="NUL"),
        pytest.param(
            "just text\n",
            "document 1: document: found 'just text'; an object has apiVersion, kind and metadata",
            id="text",
        ),
        pytest.param("kind: Pod\n", "apiVersion: found nothing; say the object's version", id="no version"),
        pytest.param("apiVersion: v1\n", "kind: found nothing; say the object's kind", id="no kind"),
        pytest.param("apiVersion: v1\nkind: Pod\n", "metadata: found nothing", id="no metadata"),
        pytest.param(pod("[a]"), "metadata: found ['a']; a mapping is expected", id="metadata is a list"),
        pytest.param(pod("{}"), "metadata.name: found nothing; give the object a name", id="no name"),
        pytest.param(pod("{name: 5}"), "metadata.name: found 5", id="name is a number"),
        pytest.param(pod("{name: A_b}"), "metadata.name: found 'A_b'; use lower-case letters", id="name"),
        pytest.param(
            pod("{name: p, labels: {gpu: yes}}"),
            "metadata.labels.gpu: found True; a string is expected; put it in quotes",
            id="label is a boolean",
        ),
        pytest.param(pod("{name: p, labels: {1: a}}"), "metadata.labels.1: found the key 1;", id="label key"),
        pytest.param(
            pod("{name: p, annotations: []}"), "metadata.annotations: found []; a mapping", id="annotations"
        ),
        pytest.param(
            pod("{name: p, x: .nan}"), "metadata.x: found nan; write it as text", id="no JSON number"
        ),
        pytest.param(
            pod("{name: p, x: !!binary aGk=}"), "metadata.x: found b'hi'; write it as text", id="binary"
        ),
        pytest.param(
            pod(spec="null"), "spec: found nothing; a pod needs a spec with containers", id="no spec"
        ),
        pytest.param(
            pod(spec="{}"), "spec.containers: found nothing; a pod needs at least one", id="no containers"
        ),
        pytest.param(
            pod(spec="{containers: {a: b}}"), "spec.containers: found {'a': 'b'}; a list", id="no list"
        ),
        pytest.param(
            pod(spec="{containers: [c]}"), "spec.containers[0]: found 'c'; a mapping", id="container"
        ),
        pytest.param(
            pod(spec="{containers: [{name: c, resources: {requests: {cpu: 2 cores}}}]}"),
            "spec.containers[0].resources.requests.cpu: found '2 cores'; a quantity such as 500m",
            id="quantity",
        ),
        pytest.param(
            pod(
                spec="{containers: [{name: c}],"
                " initContainers: [{name: i, resources: {limits: {cpu: true}}}]}"
            ),
            "spec.initContainers[0].resources.limits.cpu: found True; a quantity",
            id="quantity is a boolean",
        ),
        pytest.param(
            pod(spec="{containers: [{name: c}], overhead: {memory: 1gb}}"),
            "spec.overhead.memory: found '1gb'; a quantity",
            id="overhead",
        ),
        pytest.param(
            pod(spec="{containers: [{name: c}], schedulerName: [a]}"),
            "spec.schedulerName: found ['a']",
            id="scheduler",
        ),
        pytest.param(
            NODE.replace("8Gi", "8GiB"), "status.allocatable.memory: found '8GiB'", id="node quantity"
        ),
        pytest.param(NODE + "spec: [a]\n", "spec: found ['a']; a mapping is expected", id="node spec"),
        pytest.param(
            NODE + "spec: {taints: [{key: a, effect: Never}]}\n",
            "spec.taints[0].effect: found 'Never'; use one of NoSchedule, PreferNoSchedule, NoExecute",
            id="taint",
        ),
        pytest.param(
            NODE + "---\n" + NODE,
            "document 2: metadata.name: found Node 'n1' again (first in",
            id="same name twice",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\n", "items: found nothing; a list of objects", id="list without items"
        ),
        pytest.param(
            "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: a}, spec: {}}]\n",
            "items[0].spec.containers: found nothing",
            id="inside a list",
        ),
        pytest.param(
            "apiVersion: v1\nkind: List\nitems: [a]\n",
            "items[0]: found 'a'; an object has apiVersion",
            id="item",
        ),
    ],
)
def test_refused(load, text, says):
    """A wrong document is refused in one line with its file, number, field, finding and remedy."""
    with pytest.raises(BrokenDocumentError) as caught:
        load(text)

    assert "objects.yaml: document " in str(caught.value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("{", "document 1: text: found no JSON in line 1, column 2", id="syntax"),
        pytest.param(
            '{"a": 1, "a": 2}', "document 1: text: found the key 'a' a second time", id="repeated key"
        ),
        pytest.param('{"a": NaN}', "document 1: a: found nan", id="no number"),
        pytest.param("[" * 100_000, "document 1: text: found no JSON", id="too deep"),
        pytest.param("null\n5", "document 2: document: found 5", id="second document"),
    ],
)
def test_refused_json(load, text, says):
    """JSON files are held to the same."""
    with pytest.raises(BrokenDocumentError) as caught:
        load(text, "objects.json")

    assert f"objects.json: {says}" in str(caught.value)


def test_nothing_there(tmp_path):
    """A path that is missing, an empty folder and a file of comments are refused, each in one line."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "comments.yaml").write_text("# nothing\n")
    for name, says in (
        ("missing.yaml", "No such file or directory; give a path"),
        ("empty", "no .yaml, .yml, .json file in it"),
        ("comments.yaml", "no Kubernetes object in it"),
    ):
        with pytest.raises(UnreadableSourceError) as caught:
            ManifestFiles([tmp_path / name]).load()
        assert f"{tmp_path / name}: {says}" in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_closed_file(tmp_path):
    """A file that may not be read is refused like one that is missing."""
    (tmp_path / "a.yaml").write_text(NODE)
    (tmp_path / "a.yaml").chmod(0)
    with pytest.raises(UnreadableSourceError, match="Permission denied"):
        ManifestFiles([tmp_path / "a.yaml"]).load()


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_json_comes_back(tmp_path_factory, document):
    """Whatever JSON can hold is read as it was written."""
    path = tmp_path_factory.getbasetemp() / f"{os.getpid()}.json"
    path.write_text(json.dumps([document]))

    assert [[document]] == [read for _, read in read_documents(path)]
