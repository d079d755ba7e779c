"""From JSON to objects: exact where the API server writes, lenient where people do."""

import pytest

from berth.objects.decode import UndecodableObjectError, decoder, without_nulls
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod, pod_from_document


def test_a_pod_as_the_api_server_writes_it():
    pod = decode_pod(
        b"""{"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z",
                     "labels": {"a": "b"}, "generation": 3, "managedFields": [{"manager": "x"}]},
        "spec": {"nodeName": "n", "schedulerName": "s", "priority": 7, "dnsPolicy": "ClusterFirst",
                 "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}},
                                 "ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}]}]},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "lastProbeTime": null}]}}"""
    )

    assert ("ns/p", "u", "n", 7, {"a": "b"}) == (pod.key, pod.uid, pod.node_name, pod.priority, pod.labels)
    assert (80, "10.0.0.1") == (
        pod.spec.containers[0].ports[0].host_port,
        pod.spec.containers[0].ports[0].host_ip,
    )
    assert {"cpu": "1"} == pod.spec.containers[0].resources.requests
    assert 2026 == pod.metadata.creation_timestamp.year


def test_a_null_within_a_condition_is_an_absent_field():
    condition = '{"type": "PodScheduled", "status": "False", "lastProbeTime": null}'
    pod = decode_pod(f'{{"status": {{"conditions": [{condition}]}}}}'.encode())

    assert pod.status.conditions[0].last_probe_time is None


def test_absent_and_empty_are_distinguished_where_it_matters():
    assert decode_pod(b"{}").spec.node_selector is None
    assert {} == decode_pod(b'{"spec": {"nodeSelector": {}}}').spec.node_selector
    assert (0, "") == (decode_pod(b"{}").priority, decode_pod(b"{}").node_name)


def test_nulls_count_as_absent():
    """As in a manifest that was written by hand or by a template."""
    pod = decode_pod(
        b'{"metadata": {"name": "p", "labels": null, "creationTimestamp": null},'
        b' "spec": {"containers": null, "tolerations": [{"operator": "Exists", "key": null}]},"status":null}'
    )

    assert {} == pod.labels
    assert () == pod.spec.containers
    assert ("", "Exists") == (pod.spec.tolerations[0].key, pod.spec.tolerations[0].operator)


def test_an_image_without_names():
    """Nodes do report such images."""
    node = decoder(Node)(b'{"status": {"images": [{"names": null, "sizeBytes": 5}, {"names": []}]}}')

    assert [5, 0] == [image.size_bytes for image in node.status.images]


@pytest.mark.parametrize(
    ("data", "field"),
    [(b'{"spec": {"priority": "high"}}', "priority"), (b'{"spec": {"containers": {}}}', "containers")],
)
def test_what_is_wrong_is_said_with_its_place(data, field):
    with pytest.raises(UndecodableObjectError, match=rf"^Pod: .*{field}"):
        decode_pod(data)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff"])
def test_what_is_no_object_at_all(data):
    with pytest.raises(UndecodableObjectError):
        decode_pod(data)


def test_numbers_are_quantities_too():
    """YAML has no quotes around them."""
    pod = pod_from_document(
        {"spec": {"containers": [{"resources": {"requests": {"cpu": 1, "memory": 1.5}}}]}}
    )

    assert {"cpu": 1, "memory": 1.5} == pod.spec.containers[0].resources.requests


def test_nulls_go_at_any_depth():
    assert {"a": [{"b": 1}, None], "c": {}} == without_nulls(
        {"a": [{"b": 1, "x": None}, None], "c": {"d": None}}
    )


def test_a_pod_placed_on_a_node_is_the_same_pod_otherwise():
    pod = decode_pod(b'{"metadata": {"uid": "u"}, "spec": {"priority": 3}}')
    placed = pod.placed_on("n")

    assert ("n", "") == (placed.node_name, pod.node_name)
    assert pod == placed.placed_on("")
