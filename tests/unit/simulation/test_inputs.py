"""Files become clusters, or an error that names the file, the object, the field and what to do."""

import gzip
import json

import pytest

from berth.objects.node import Node
from berth.objects.pod_groups import PodGroup
from berth.objects.pods.pod import Pod
from berth.simulation.errors import InputError
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.reading.timeline import arrival_of, duration_of
from tests.unit.simulation.kit import cluster, node, pod, thing, written


def test_lists_are_taken_apart(tmp_path):
    """What `kubectl get -o json` prints is read item by item."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [node("n0"), pod("p0")]}

    found = read_cluster([written(tmp_path / "all.json", listed)])

    assert ["n0"] == list(found.of(Node))
    assert ["default/p0"] == list(found.of(Pod))


def test_several_files_make_one_cluster(tmp_path):
    """Objects of all paths are put together."""
    first = written(tmp_path / "nodes.json", node("n0"))
    second = tmp_path / "more.yaml"
    second.write_text(json.dumps(node("n1")), encoding="utf-8")

    assert ["n0", "n1"] == list(read_cluster([first, second]).of(Node))


def test_gzip_is_read_by_its_first_bytes(tmp_path):
    """A compressed file is unpacked, whatever it is called."""
    path = tmp_path / "cluster.json.gz"
    path.write_bytes(gzip.compress(json.dumps(node("n0")).encode()))

    assert ["n0"] == list(read_cluster([path]).of(Node))


def test_priority_comes_from_the_class(tmp_path):
    """A pod written by hand gets the priority that its class stands for."""
    high = thing("PriorityClass", "high", "scheduling.k8s.io/v1", value=1000)

    found = read_cluster([written(tmp_path / "c.json", pod("p0", priorityClassName="high"), high)])

    assert 1000 == found.of(Pod)["default/p0"].priority


def test_finished_pods_are_left_out(tmp_path):
    """A pod that ended holds nothing any more."""
    ended = {**pod("p0"), "status": {"phase": "Succeeded"}}

    found = read_cluster([written(tmp_path / "c.json", ended, thing("Secret", "s"))])

    assert {} == found.of(Pod)
    assert {"finished Pod": 1, "Secret": 1} == found.left_out


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param(pod("p0", priority="high"), ("Pod default/p0", "spec.priority", "correct"), id="type"),
        pytest.param(pod("p0", priorityClassName="gone"), ("priorityClassName", "add the"), id="class"),
        pytest.param(pod("p0", cpu="1x"), ("requests.cpu", "quantity"), id="quantity"),
        pytest.param(
            thing("CSINode", "n", "storage.k8s.io/v1beta1"), ("CSINode n", "storage.k8s.io/v1"), id="version"
        ),
        pytest.param({"kind": "Node"}, ("apiVersion", "v1"), id="no version"),
    ],
)
def test_errors_name_the_place(tmp_path, document, said):
    """A wrong object is named by file, kind and name, field, and remedy."""
    path = written(tmp_path / "c.json", document)

    with pytest.raises(InputError) as caught:
        read_cluster([path])

    assert str(caught.value).startswith(f"{path}: document 1")
    assert all(part in str(caught.value) for part in said), str(caught.value)


def test_an_object_is_defined_once(tmp_path):
    """Two objects of one name are refused: it would be open which one counts."""
    path = written(tmp_path / "c.json", node("n0"), node("n0"))

    with pytest.raises(InputError, match=r"n0.*second time"):
        read_cluster([path])


def test_a_trace_has_its_times(tmp_path):
    """Pods of a trace's own files come and end as they did, from the first one's arrival on."""
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,1024,0,\n"
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    head += "creation_time,deletion_time,scheduled_time\n"
    lines = "a,1000,1,0,0,,LS,Running,100,400,110\nb,1000,1,0,0,,LS,Pending,160,,\n"
    (tmp_path / "openb_node_list_all_node.csv").write_text(nodes, encoding="utf-8")
    (tmp_path / "openb_pod_list_default.csv").write_text(head + lines, encoding="utf-8")

    first, second = read_cluster([tmp_path]).of(Pod).values()

    assert (0.0, 300.0) == (arrival_of(first), duration_of(first))
    assert (60.0, None) == (arrival_of(second), duration_of(second))


def test_a_pod_of_no_api_server_with_a_uid(tmp_path):
    """A pod written by hand gets its defaults, with a UID as well: no API server leaves out the profile."""
    document = pod("p")
    document["metadata"]["uid"] = "by-hand"
    (found,) = cluster(tmp_path, document).of(Pod).values()

    assert ("default-scheduler", "by-hand") == (found.spec.scheduler_name, found.uid)


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
def test_pod_groups_of_each_release(tmp_path, version):
    """A PodGroup of v1.36 and one of v1.37 are both read."""
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    group = thing("PodGroup", "g", f"scheduling.k8s.io/{version}", spec=spec)

    assert 2 == cluster(tmp_path, group).of(PodGroup)["default/g"].min_count


def test_a_version_that_no_release_has(tmp_path):
    """The error names all versions that are read."""
    group = thing("PodGroup", "g", "scheduling.k8s.io/v1alpha1", spec={})

    with pytest.raises(
        InputError, match=r"give the object as (scheduling.k8s.io/(v1beta1|v1alpha3|v1alpha2)( or )?){3}$"
    ):
        cluster(tmp_path, group)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{apiVersion: v1, kind: Node, metadata: {name: n0}}\n", id="a flow mapping"),
        pytest.param(
            f"{json.dumps(node('n0'))}\n---\nkind: Node\napiVersion: v1\nmetadata: {{name: n1}}\n", id="mixed"
        ),
    ],
)
def test_yaml_that_begins_with_a_brace(tmp_path, text):
    """It is YAML all the same."""
    path = tmp_path / "cluster.yaml"
    path.write_text(text, encoding="utf-8")

    assert "n0" in read_cluster([path]).of(Node)
