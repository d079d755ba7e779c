import pytest

pytestmark = pytest.mark.e2e

GROUP = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: training}
spec:
  schedulingPolicy: {gang: {minCount: %d}}
  schedulingConstraints: {topology: [{key: topology.kubernetes.io/zone}]}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: Workload
metadata: {name: training}
spec:
  podGroupTemplates:
  - name: workers
    schedulingPolicy: {gang: {minCount: 8}}
"""


@pytest.fixture(autouse=True)
def _served(api_server):
    if not api_server.has_pod_groups:
        pytest.skip("PodGroups of this version came with Kubernetes 1.36")


def test_pod_groups_through_kubectl(cluster):
    """Groups and workloads are applied, shown, described, explained and deleted like any other kind."""
    applied = cluster.kubectl("apply", "-f", "-", stdin=GROUP % 8)
    header, row = cluster.kubectl("get", "podgroups").splitlines()

    assert applied.split() == [
        "podgroup.scheduling.k8s.io/training",
        "created",
        "workload.scheduling.k8s.io/training",
        "created",
    ]
    assert ["NAME", "POLICY", "WORKLOAD", "STATUS", "AGE"] == header.split()
    assert ["training", "Gang", "<none>", "Pending"] == row.split()[:4]
    assert ["NAME", "AGE"] == cluster.kubectl("get", "workloads").splitlines()[0].split()
    cluster.kubectl("apply", "-f", "-", stdin=GROUP % 8)
    assert "Min Count:  8" in cluster.kubectl("describe", "podgroup", "training")
    assert "minCount" in cluster.kubectl("explain", "podgroup.spec.schedulingPolicy.gang")
    # A real one is kept until a controller has seen that no pod needs it.
    assert 'podgroup.scheduling.k8s.io "training" deleted' in cluster.kubectl(
        "delete", "podgroup", "training", "--wait=false"
    )


def test_a_group_cannot_be_resized_through_kubectl(cluster):
    """What is fixed at creation is refused with the field's name."""
    cluster.kubectl("apply", "-f", "-", stdin=GROUP % 8)
    refused = cluster.kubectl("apply", "-f", "-", stdin=GROUP % 4, fails=True)

    assert "spec.schedulingPolicy" in refused
    assert "field is immutable" in refused
