import pytest

from tests.unit.sandbox.conftest import PODS, events


def message(answer):
    return answer[0], answer[1]["message"]


def test_defaults(server):
    """A new pod is Pending and has what schedulers rely on filled in."""
    pod = server.pod()
    spec = pod["spec"]

    assert "Pending" == pod["status"]["phase"]
    assert ("default-scheduler", 0, "Always") == (
        spec["schedulerName"],
        spec["priority"],
        spec["restartPolicy"],
    )
    assert {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} == {
        toleration["key"] for toleration in spec["tolerations"]
    }


def test_requests_from_limits(server):
    """A limit without a request is the request too, in canonical form."""
    resources = {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}}
    pod = server.pod(containers=[{"name": "c", "image": "x", "resources": resources}])

    assert {"cpu": "500m", "memory": "1Gi"} == pod["spec"]["containers"][0]["resources"]["requests"]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"nvidia.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_qos_class(server, resources, expected):
    """The quality of service follows from cpu and memory alone."""
    pod = server.pod(containers=[{"name": "c", "image": "x", "resources": resources}])

    assert expected == pod["status"]["qosClass"]


def test_priority_class(server):
    """A pod gets the value and policy of its priority class."""
    body = {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}
    server.post("/apis/scheduling.k8s.io/v1/priorityclasses", body)

    spec = server.pod(priorityClassName="high")["spec"]

    assert (1000, "Never") == (spec["priority"], spec["preemptionPolicy"])


def test_global_default_priority(server):
    """A pod without a class gets the class marked as the default."""
    body = {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True}
    server.post("/apis/scheduling.k8s.io/v1/priorityclasses", body)

    spec = server.pod()["spec"]

    assert ("usual", 7) == (spec["priorityClassName"], spec["priority"])


def test_unknown_priority_class(server):
    """A class that is not there is refused in upstream's words."""
    body = {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "x"}], "priorityClassName": "no"},
    }

    expected = (403, 'pods "a" is forbidden: no PriorityClass with name no was found')
    assert expected == message(server.post(PODS, body))


def test_match_label_keys(server):
    """matchLabelKeys become requirements on the pod's own labels; keys it lacks are left out."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
        "matchLabelKeys": ["version", "missing"],
    }
    term = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["version"]}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pod = server.pod(labels={"version": "2"}, topologySpreadConstraints=[constraint], affinity=affinity)

    spread = pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"]
    merged = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert [{"key": "version", "operator": "In", "values": ["2"]}] == spread
    assert [{"key": "version", "operator": "NotIn", "values": ["2"]}] == merged["labelSelector"][
        "matchExpressions"
    ]


def test_gates(server):
    """A gated pod says so, cannot be bound, and becomes an ordinary one when its gates go."""
    server.pod(schedulingGates=[{"name": "example.com/wait"}])

    expected = 'Operation cannot be fulfilled on pods/binding "a": pod a has non-empty .spec.schedulingGates'
    assert (409, expected) == message(server.bind())
    status, pod = server.patch(f"{PODS}/a", {"spec": {"schedulingGates": None}})
    assert 200 == status
    assert [] == pod["status"].get("conditions", [])
    assert 201 == server.bind()[0]


def test_gates_cannot_be_added(server):
    """Gates may only be removed."""
    server.pod()

    status, answer = server.patch(f"{PODS}/a", {"spec": {"schedulingGates": [{"name": "x.io/y"}]}})

    assert 422 == status
    assert "spec.schedulingGates" == answer["details"]["causes"][0]["field"]


def test_binding(server):
    """Binding sets the node and PodScheduled, takes over annotations, and ends the nomination."""
    server.pod()
    server.patch(f"{PODS}/a/status", {"status": {"nominatedNodeName": "n2"}})

    status, answer = server.bind(annotations={"example.com/device": "0"})

    _, pod = server.get(f"{PODS}/a")
    assert (201, "Success") == (status, answer["status"])
    assert "n1" == pod["spec"]["nodeName"]
    assert "0" == pod["metadata"]["annotations"]["example.com/device"]
    assert "nominatedNodeName" not in pod["status"]
    assert [("PodScheduled", "True")] == [(c["type"], c["status"]) for c in pod["status"]["conditions"]]


def test_bound_once(server):
    """A second binding is a conflict, in upstream's words."""
    server.pod()
    server.bind()

    expected = 'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    assert (409, expected) == message(server.bind(node="n2"))


def test_binding_of_another_uid(server):
    """A binding meant for an earlier pod of that name is a conflict."""
    server.pod()

    status, answer = server.bind(uid="other")

    assert (409, "Conflict") == (status, answer["reason"])
    assert "Precondition failed: UID in precondition: other" in answer["message"]


def test_binding_of_nothing(server):
    """A pod that is gone cannot be bound."""
    assert (404, 'pods "a" not found') == message(server.bind())


@pytest.mark.parametrize(
    ("binding", "expected"),
    [
        (
            {"target": {"name": "n1"}},
            (400, "BadRequest", "name in URL does not match name in Binding object"),
        ),
        ({"metadata": {"name": "a"}, "target": {"name": ""}}, (500, None, "target.name: Required value")),
        (
            {"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": "n1"}},
            (500, None, 'target.kind: Unsupported value: "Pod": supported values: "<empty>", "Node"'),
        ),
    ],
)
def test_wrong_binding(server, binding, expected):
    """A binding says which pod it is of, and names a node."""
    server.pod()
    status, answer = server.post(f"{PODS}/a/binding", binding)

    assert expected == (status, answer.get("reason"), answer["message"])


def test_legacy_binding(server):
    """The namespace's bindings collection does the same."""
    server.pod()
    body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}

    assert 201 == server.post("/api/v1/namespaces/default/bindings", body)[0]
    assert "n1" == server.get(f"{PODS}/a")[1]["spec"]["nodeName"]


def test_delete_unbound(server):
    """An unbound pod goes at once."""
    server.pod()

    assert 200 == server.delete(f"{PODS}/a")[0]
    assert 404 == server.get(f"{PODS}/a")[0]


@pytest.mark.parametrize(
    ("bound", "options", "periods"),
    [
        pytest.param(False, [None], [0, 0], id="an unbound one"),
        pytest.param(True, [{"gracePeriodSeconds": 0}], [0, 0], id="a bound one, at once"),
        pytest.param(True, [None, {"gracePeriodSeconds": 0}], [30, 0, 0], id="after its grace period"),
    ],
)
def test_deletion_is_seen(server, bound, options, periods):
    """A watch shows that a pod is being deleted before it goes, and again when its time is cut short."""
    server.pod()
    if bound:
        server.bind()
    watch = server.watch(PODS, resourceVersion=server.store.revision)
    for one in options:
        server.delete(f"{PODS}/a", one)

    seen = [(kind, pod["metadata"]) for kind, pod in events(watch)]
    assert [*["MODIFIED"] * (len(periods) - 1), "DELETED"] == [kind for kind, _ in seen]
    assert periods == [metadata["deletionGracePeriodSeconds"] for _, metadata in seen]
    assert {2} == {metadata["generation"] for _, metadata in seen}


def test_delete_bound(server):
    """A bound pod is marked and waits for its kubelet."""
    server.pod()
    server.bind()

    _, pod = server.delete(f"{PODS}/a")

    assert ("2023-11-14T22:13:50Z", 30) == (
        pod["metadata"]["deletionTimestamp"],
        pod["metadata"]["deletionGracePeriodSeconds"],
    )
    assert 200 == server.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})[0]
    assert 404 == server.get(f"{PODS}/a")[0]


def test_delete_precondition(server):
    """A deletion meant for another pod of that name, or for its earlier state, is a conflict."""
    uid = server.pod()["metadata"]["uid"]

    status, answer = server.delete(f"{PODS}/a", {"preconditions": {"uid": "other"}})
    assert (409, "Pod") == (status, answer["details"]["kind"])
    assert (
        f"the UID in the precondition (other) does not match the UID in record ({uid})" in answer["message"]
    )
    status, answer = server.delete(f"{PODS}/a", {"preconditions": {"resourceVersion": "1"}})
    assert (409, True) == (status, answer["message"].endswith("The object might have been modified"))


def test_another_uid(server):
    """An update of another pod of that name is a conflict; a patch may not change what a pod is."""
    server.pod()
    other = {"metadata": {"name": "a", "uid": "other"}}

    status, answer = server.put(f"{PODS}/a", other)
    assert (409, True) == (status, "UID in precondition: other" in answer["message"])
    status, answer = server.patch(f"{PODS}/a/status", {**other, "status": {"message": "x"}})
    assert (422, "metadata.uid") == (status, answer["details"]["causes"][0]["field"])


def test_immutable_spec(server):
    """The spec of a pod is fixed, but for its image and a few more."""
    server.pod()

    assert 422 == server.patch(f"{PODS}/a", {"spec": {"nodeSelector": {"a": "b"}}})[0]
    image = {"spec": {"containers": [{"name": "c", "image": "y:2"}]}}
    assert 200 == server.patch(f"{PODS}/a", image, "strategic-merge")[0]


def test_status_apart(server):
    """The main resource does not write status, the status subresource writes nothing else."""
    server.pod()
    server.patch(f"{PODS}/a", {"status": {"phase": "Running"}})
    server.patch(f"{PODS}/a/status", {"spec": {"priority": 5}, "status": {"message": "hello"}})

    _, pod = server.get(f"{PODS}/a")
    assert ("Pending", "hello", 0) == (
        pod["status"]["phase"],
        pod["status"]["message"],
        pod["spec"]["priority"],
    )


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "spec.containers", "FieldValueRequired"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image", "FieldValueRequired"),
        ({"containers": [{"name": "C", "image": "x"}]}, "spec.containers[0].name", "FieldValueInvalid"),
        (
            {"containers": [{"name": "c", "image": "x"}, {"name": "c", "image": "x"}]},
            "spec.containers[1].name",
            "FieldValueDuplicate",
        ),
        (
            {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "many"}}}]},
            "spec.containers[0].resources.requests[cpu]",
            "FieldValueInvalid",
        ),
        (
            {
                "containers": [
                    {"name": "c", "image": "x", "resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}}
                ]
            },
            "spec.containers[0].resources.requests",
            "FieldValueInvalid",
        ),
    ],
)
def test_invalid(server, spec, field, reason):
    """A wrong pod is refused with the field that is wrong."""
    status, answer = server.post(PODS, {"metadata": {"name": "a"}, "spec": spec})

    assert (422, "Invalid") == (status, answer["reason"])
    assert (reason, field) == (
        answer["details"]["causes"][0]["reason"],
        answer["details"]["causes"][0]["field"],
    )


def test_eviction(server):
    """A pod under a budget that allows nothing cannot be evicted; one that allows it can, and both tell."""
    server.pod(labels={"app": "a"})
    server.bind()
    server.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    server.post(budgets, {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "a"}}}})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}

    def refusal():
        code, answer = server.post(f"{PODS}/a/eviction", eviction)
        return code, answer["details"]["causes"][0]["message"]

    assert (429, "The disruption budget b is still being processed by the server.") == refusal()
    server.patch(f"{budgets}/b/status", {"status": {"observedGeneration": 1, "desiredHealthy": 1}})
    assert (429, "The disruption budget b needs 1 healthy pods and has 0 currently") == refusal()
    server.patch(f"{budgets}/b/status", {"status": {"disruptionsAllowed": 1}})
    assert 201 == server.post(f"{PODS}/a/eviction", eviction)[0]

    status = server.get(f"{budgets}/b")[1]["status"]
    assert (0, "InsufficientPods") == (status["disruptionsAllowed"], status["conditions"][0]["reason"])
    pod = server.get(f"{PODS}/a")[1]
    assert "deletionTimestamp" in pod["metadata"]
    assert ("DisruptionTarget", "EvictionByEvictionAPI") == (
        pod["status"]["conditions"][-1]["type"],
        pod["status"]["conditions"][-1]["reason"],
    )
