"""Templates: equal pods share one, whatever they are made of, and it goes with the last of them."""

import gc
from weakref import ref

import msgspec
import pytest

from berth.objects.pods import pod_template
from berth.objects.pods.pod_decoding import decode_pod, pod_from_document
from berth.objects.pods.pod_spec import PodSpec
from berth.testing.builders import make_pod

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def document(name="web-1", node="", chance="abcde", **spec):
    """A Deployment's pod as the API server sends it."""
    token = {"name": f"kube-api-access-{chance}", "readOnly": True, "mountPath": SERVICE_ACCOUNT}
    volume = {"name": f"kube-api-access-{chance}", "projected": {"sources": [], "defaultMode": 420}}
    container = {"name": "main", "image": "web:1", "volumeMounts": [token]}
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "labels": {"app": "web"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}],
        },
        "spec": {"nodeName": node, "containers": [container], "volumes": [volume], **spec},
        "status": {"phase": "Running", "startTime": "2026-01-02T03:04:05Z"},
    }


def decoded(written):
    return decode_pod(msgspec.json.encode(written))


def with_metadata(**metadata):
    written = document()
    return {**written, "metadata": {**written["metadata"], **metadata}}


def test_pods_of_one_workload_share_a_template():
    one, other = decoded(document("web-1", "n1", "abcde")), decoded(document("web-2", "n2", "fghij"))

    assert one.template is other.template
    assert ("web-1", "n1", "web-2", "n2") == (one.name, one.node_name, other.name, other.node_name)


def test_what_varies_does_not_part_templates():
    """Versions, annotations, status and what scheduling does not read of containers."""
    plain = decoded(document())
    written = with_metadata(resourceVersion="8", annotations={"ip": "10.0.0.7"}, generation=2)
    written["status"] = {"phase": "Pending"}
    written["spec"]["containers"][0]["env"] = [{"name": "WHO", "value": "web-1"}]

    assert plain.template is decoded(written).template


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(with_metadata(namespace="bank"), id="namespace"),
        pytest.param(with_metadata(labels={"app": "api"}), id="labels"),
        pytest.param(with_metadata(ownerReferences=[{"kind": "Job", "uid": "j"}]), id="owners"),
        pytest.param(document(schedulerName="mine"), id="profile"),
        pytest.param(document(nodeSelector={"disk": "ssd"}), id="node selector"),
        pytest.param(document(nodeSelector={}), id="an empty node selector, which is not none"),
        pytest.param(document(affinity={"nodeAffinity": {}}), id="affinity"),
        pytest.param(document(tolerations=[{"operator": "Exists"}]), id="tolerations"),
        pytest.param(document(topologySpreadConstraints=[{"maxSkew": 1}]), id="spreading"),
        pytest.param(document(containers=[{"name": "main", "image": "web:2"}]), id="image"),
        pytest.param(document(initContainers=[{"name": "first"}]), id="init containers"),
        pytest.param(document(overhead={"cpu": "1"}), id="overhead"),
        pytest.param(document(resources={"requests": {"cpu": "1"}}), id="pod-level resources"),
        pytest.param(document(priority=7), id="priority"),
        pytest.param(document(preemptionPolicy="Never"), id="preemption policy"),
        pytest.param(document(schedulingGates=[{"name": "g"}]), id="gates"),
        pytest.param(document(volumes=[{"name": "v", "emptyDir": {}}]), id="volumes"),
        pytest.param(document(resourceClaims=[{"name": "c"}]), id="claims"),
        pytest.param(document(schedulingGroup={"podGroupName": "g"}), id="group"),
        pytest.param(document(hostNetwork=True), id="host network"),
        pytest.param(document(hostUsers=False), id="host users"),
        pytest.param(document(terminationGracePeriodSeconds=5), id="grace"),
    ],
)
def test_what_plugins_read_parts_templates(other):
    assert decoded(document()).template is not decoded(other).template


def test_every_field_of_the_spec_is_in_the_case_table():
    """A field that is read one day is to part templates, too."""
    tried = {name for case in test_what_plugins_read_parts_templates.pytestmark for name in _fields_of(case)}

    assert set(PodSpec.__struct_encode_fields__) - tried - {"nodeName"} == set()


def _fields_of(mark):
    return {name for case in mark.args[1] for name in case.values[0]["spec"]}


def test_only_the_name_of_a_token_volume_is_left_out():
    """A volume of another kind under such a name is known by it."""
    named = [{"name": f"kube-api-access-{chance}", "ephemeral": {}} for chance in ("abcde", "fghij")]
    one, other = (decoded(document(volumes=[volume])) for volume in named)

    assert one.template is not other.template


def test_an_image_that_is_called_like_a_token_volume_is_an_image():
    """Bytes are replaced only where they are a token's volume or its mount."""
    texts = (f'x"kube-api-access-{chance}"' for chance in ("abcde", "fghij"))
    one, other = (decoded(document(containers=[{"name": "c", "image": text}])) for text in texts)

    assert one.spec.containers[0].image != other.spec.containers[0].image


def test_a_container_that_is_called_like_a_token_volume_keeps_its_name():
    names = ("kube-api-access-abcde", "kube-api-access-fghij")
    found = [decoded(document(containers=[{"name": name}])).spec.containers[0].name for name in names]

    assert list(names) == found


def test_a_template_is_the_same_however_the_pod_was_made():
    written = document()
    del written["spec"]["nodeName"]
    pod = decoded(written)

    assert pod.template is pod_from_document(written).template
    assert pod.template is pod.of(pod.metadata, pod.spec, pod.status).template
    assert pod.template is pod.placed_on("n1").template


def test_a_pod_of_other_labels_is_of_another_template():
    pod = make_pod(labels={"app": "web"})
    other = msgspec.structs.replace(
        pod, metadata=msgspec.structs.replace(pod.metadata, labels={"app": "api"})
    )

    assert pod.template is not other.template
    assert {"app": "api"} == other.template.labels


def test_a_template_goes_with_its_last_pod():
    gc.collect()
    before = pod_template.interned_count()
    one, other = decoded(document("gone-1", priority=99)), decoded(document("gone-2", priority=99))
    template = ref(one.template)

    del one
    assert template() is not None
    del other
    gc.collect()
    assert (None, before) == (template(), pod_template.interned_count())


def test_what_is_derived_is_made_once():
    made = []

    def make(template):
        made.append(template)
        return object()

    one, other = decoded(document("web-1")), decoded(document("web-2"))

    assert one.template.derived(make) is other.template.derived(make)
    assert [one.template] == made
