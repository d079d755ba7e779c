"""Pod groups and workloads as the API server has them."""

import pytest

from berth.sandbox.reading.tables_kinds import table_for

ROOT = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default"
GROUPS, WORKLOADS = f"{ROOT}/podgroups", f"{ROOT}/workloads"
GANG = {"gang": {"minCount": 3}}


def group(policy=GANG, **spec):
    return {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": policy, **spec}}


def workload(*templates):
    return {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": list(templates)}}


def template(name="workers", policy=GANG, **fields):
    return {"name": name, "schedulingPolicy": policy, **fields}


def wrong(answer):
    """The fields that an answer complains about."""
    status, document = answer
    assert 422 == status, document
    return [cause["field"] for cause in document["details"]["causes"]]


def test_a_group_gets_defaults(server):
    """Pods are disrupted one by one, and the priority is 0, unless the group says otherwise."""
    status, created = server.post(GROUPS, group())

    assert 201 == status
    assert ("Pod", 0) == (created["spec"]["disruptionMode"], created["spec"]["priority"])
    assert {} == created["status"]
    assert "generation" not in created["metadata"]


def test_a_group_gets_the_priority_of_its_class(server):
    """A class that is not there is refused."""
    server.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    _, created = server.post(GROUPS, group(priorityClassName="high"))
    status, refused = server.post(GROUPS, group(priorityClassName="no"))

    assert 1000 == created["spec"]["priority"]
    text = 'podgroups.scheduling.k8s.io "g" is forbidden: no PriorityClass with name no was found'
    assert (403, text) == (status, refused["message"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"metadata": {"name": "g"}, "spec": {}}, "spec.schedulingPolicy"),
        (group({}), "spec.schedulingPolicy"),
        (group({"basic": {}, "gang": {"minCount": 1}}), "spec.schedulingPolicy"),
        (group({"gang": {}}), "spec.schedulingPolicy.gang.minCount"),
        (group({"gang": {"minCount": 0}}), "spec.schedulingPolicy.gang.minCount"),
        (
            group(schedulingConstraints={"topology": [{"key": "a"}, {"key": "b"}]}),
            "spec.schedulingConstraints.topology",
        ),
        (
            group(schedulingConstraints={"topology": [{"key": "-"}]}),
            "spec.schedulingConstraints.topology[0].key",
        ),
        (group(disruptionMode="Some"), "spec.disruptionMode"),
        (group(resourceClaims=[{"name": f"c{i}"} for i in range(5)]), "spec.resourceClaims"),
    ],
)
def test_wrong_groups_are_refused(server, body, field):
    """Exactly one policy, at most one topology key and four claims."""
    assert [field] == wrong(server.post(GROUPS, body))


def test_a_basic_group_is_allowed(server):
    """A policy without parameters is one."""
    assert 201 == server.post(GROUPS, group({"basic": {}}))[0]


def test_the_spec_of_a_group_never_changes(server):
    """Not even the number of pods that a gang needs."""
    server.post(GROUPS, group())
    changed = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}

    assert ["spec.schedulingPolicy"] == wrong(server.patch(f"{GROUPS}/g", changed))


def test_conditions_of_a_group_merge_by_type(server):
    """The status is a subresource, and a strategic patch puts a condition among the others."""
    server.post(GROUPS, group())
    for kind, status in (("PodGroupScheduled", "False"), ("Other", "True"), ("PodGroupScheduled", "True")):
        condition = {"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": None}
        answer, document = server.patch(
            f"{GROUPS}/g/status", {"status": {"conditions": [condition]}}, kind="strategic-merge"
        )
        assert 200 == answer, document
    conditions = server.get(f"{GROUPS}/g")[1]["status"]["conditions"]

    assert {"PodGroupScheduled": "True", "Other": "True"} == {c["type"]: c["status"] for c in conditions}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (workload(), "spec.podGroupTemplates"),
        (workload(*[template(f"t{i}") for i in range(9)]), "spec.podGroupTemplates"),
        (workload(template("a"), template("a")), "spec.podGroupTemplates[1].name"),
        (workload(template("No")), "spec.podGroupTemplates[0].name"),
        (workload(template(policy={})), "spec.podGroupTemplates[0].schedulingPolicy"),
    ],
)
def test_wrong_workloads_are_refused(server, body, field):
    """One to eight templates, each with a name of its own and a policy."""
    assert field in wrong(server.post(WORKLOADS, body))


def test_the_templates_of_a_workload_never_change(server):
    """They are blueprints."""
    assert 201 == server.post(WORKLOADS, workload(template()))[0]
    changed = {"spec": {"podGroupTemplates": [template(policy={"basic": {}})]}}

    assert ["spec.podGroupTemplates"] == wrong(server.patch(f"{WORKLOADS}/w", changed))


@pytest.mark.parametrize(
    ("plural", "document", "cells"),
    [
        ("podgroups", group(), ["g", "Gang", "<none>", "Pending"]),
        (
            "podgroups",
            {
                **group({"basic": {}}),
                "status": {"conditions": [{"type": "PodGroupScheduled", "reason": "Scheduled"}]},
            },
            ["g", "Basic", "<none>", "Scheduled"],
        ),
        (
            "podgroups",
            {
                **group(),
                "status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "Gone"}]},
            },
            ["g", "Gang", "<none>", "Gone"],
        ),
        ("workloads", workload(template("a"), template("b")), ["w", "<unknown>"]),
    ],
)
def test_columns(server, plural, document, cells):
    """What kubectl shows of them."""
    resource = server.api.rest.catalogue.get("scheduling.k8s.io", "v1alpha2", plural)

    assert cells == table_for(resource).cells(document, 0)[: len(cells)]


def test_a_pod_stays_with_its_group(server):
    """A pod's group is fixed at creation."""
    server.pod(schedulingGroup={"podGroupName": "g"})
    answer = server.patch(
        "/api/v1/namespaces/default/pods/a", {"spec": {"schedulingGroup": {"podGroupName": "h"}}}
    )

    assert 422 == answer[0]
