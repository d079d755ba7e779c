"""The JSON of a pod as it would be if it were written otherwise."""

import msgspec

from berth.framework.hypothetical_pod import HypotheticalPod
from berth.objects.pods.pod import PodObject
from berth.objects.pods.pod_decoding import decode_pod
from berth.objects.taint import Toleration

WRITTEN = {
    "metadata": {"name": "p", "namespace": "d", "uid": "u", "labels": {"team": "a"}, "managedFields": [1]},
    "spec": {
        "nodeSelector": {"disk": "ssd", "zone": "a"},
        "containers": [
            {"name": "c", "image": "i", "env": [{"name": "E"}], "resources": {"requests": {"cpu": "4"}}},
            {"name": "d", "image": "i", "env": [{"name": "F"}]},
        ],
        "unheardOf": {"x": 1},
    },
}
KNOWN = msgspec.json.encode(WRITTEN)


def supposed(known=KNOWN, **changes):
    """What is sent of the pod with these fields of its spec otherwise, and the supposition."""
    pod = decode_pod(KNOWN)
    supposition = HypotheticalPod(pod, pod.with_spec(msgspec.structs.replace(pod.spec, **changes)))
    return msgspec.json.decode(supposition.object(known)), supposition


def test_only_what_is_changed_differs():
    """A smaller request in one container: all that is not decoded here stays."""
    pod = decode_pod(KNOWN)
    first, second = pod.spec.containers
    resources = msgspec.structs.replace(first.resources, requests={"cpu": "1"})
    found, supposition = supposed(containers=(msgspec.structs.replace(first, resources=resources), second))

    expected = msgspec.json.decode(KNOWN)
    expected["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    expected["metadata"]["uid"] = supposition.uid
    assert expected == found
    assert "u" != supposition.uid


def test_what_is_added_and_what_is_left_out():
    found, _ = supposed(node_selector={"zone": "a"}, tolerations=(Toleration("gpu", "Exists"),), priority=7)

    assert {"zone": "a"} == found["spec"]["nodeSelector"]
    assert ([{"key": "gpu", "operator": "Exists"}], 7) == (
        found["spec"]["tolerations"],
        found["spec"]["priority"],
    )
    assert {"x": 1} == found["spec"]["unheardOf"]


def test_a_pod_whose_bytes_were_not_kept():
    """It is sent as it was decoded."""
    found, supposition = supposed(b"", node_selector={})

    made = msgspec.convert(found, PodObject)
    assert (supposition.uid, "4") == (made.metadata.uid, made.spec.containers[0].resources.requests["cpu"])
    assert {} == found["spec"]["nodeSelector"]


def test_it_is_written_once_for_all_that_are_sent_it():
    _, supposition = supposed(priority=1)

    assert supposition.object(KNOWN) is supposition.object(KNOWN)
    assert supposition.object(KNOWN) != supposition.object(b"")
