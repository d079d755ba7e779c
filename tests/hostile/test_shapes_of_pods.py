"""A pod with four times as much of anything takes about four times the work, not sixteen times."""

import pytest

from berth.objects.label_selector import LabelSelector, Requirement, compile_selector
from tests.hostile.deciding import (
    HOST,
    PREFERRED,
    REQUIRED,
    ZONE,
    CountedText,
    a_core,
    a_pod,
    decide,
    place,
    with_counted_labels,
)
from tests.hostile.work import calls, growth

LINEAR = 1.6
"""Growth by `growth`: linear is 1, a quadratic part that matters soon more than this."""


def term(i, key=HOST):
    return {"topologyKey": key, "labelSelector": {"matchLabels": {f"k{i}": "x"}}}


def constraint(key=ZONE, when="DoNotSchedule", **selector):
    return {"maxSkew": 5, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}


def pod_affinity(n):
    return {"affinity": {"podAffinity": {REQUIRED: [term(i) for i in range(n)]}}}


def pod_anti_affinity(n):
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(i) for i in range(n)]}}}


def preferred_terms(n):
    return {
        "affinity": {
            "podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term(i)} for i in range(n)]}
        }
    }


def topology_keys_of_terms(n):
    terms = [{"weight": 1, "podAffinityTerm": term(0, key=f"level-{i}")} for i in range(n)]
    return {"labels": {"k0": "x"}, "affinity": {"podAffinity": {PREFERRED: terms}}}


def terms_times_values(n):
    first = {"key": "app", "operator": "In", "values": [f"v{i}" for i in range(n)]}
    many = {"topologyKey": HOST, "labelSelector": {"matchExpressions": [first]}}
    return {"affinity": {"podAffinity": {REQUIRED: [many, *(term(i) for i in range(n))]}}}


def node_affinity(operator, *values):
    def shape(n):
        terms = [
            {"matchExpressions": [{"key": f"k{i}", "operator": operator, "values": list(values)}]}
            for i in range(n)
        ]
        return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}

    return shape


def node_preferences(n):
    wishes = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]}}
        for i in range(n)
    ]
    return {"affinity": {"nodeAffinity": {PREFERRED: wishes}}}


def node_names(n):
    names = [{"key": "metadata.name", "operator": "In", "values": [f"node-{i}" for i in range(n)]}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": names}]}}}}


def node_selector(n):
    return {"nodeSelector": {f"k{i}": "x" for i in range(n)}}


def hard_constraints(n):
    return {"topologySpreadConstraints": [constraint(f"k{i}", matchLabels={"a": "x"}) for i in range(n)]}


def soft_constraints(n):
    wanted = [constraint(f"k{i}", "ScheduleAnyway", matchLabels={"a": "x"}) for i in range(n)]
    return {"topologySpreadConstraints": wanted}


def values_of_a_constraint(n):
    within = {"key": "app", "operator": "In", "values": [f"v{i}" for i in range(n)]}
    return {"topologySpreadConstraints": [constraint(matchExpressions=[within])]}


def requirements_of_a_constraint(n):
    absent = [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(n)]
    return {"topologySpreadConstraints": [constraint(matchExpressions=absent)]}


def match_label_keys(n):
    keys = [f"k{i}" for i in range(n)]
    labels = dict.fromkeys(keys, "x")
    return {"labels": labels, "topologySpreadConstraints": [{**constraint(), "matchLabelKeys": keys}]}


def tolerations(n):
    return {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(n)]}


def resources(n):
    amounts = {f"example.com/r{i}": "0" for i in range(n)}
    return {"container": {"resources": {"requests": amounts, "limits": amounts}}}


def host_ports(n):
    return {"container": {"ports": [{"containerPort": i + 1, "hostPort": i + 1} for i in range(n)]}}


def containers(n):
    each = [
        {"name": f"c{i}", "image": f"image-{i}", "resources": {"requests": {"cpu": "1m"}}} for i in range(n)
    ]
    return {"containers": each}


def sidecar_containers(n):
    started = [
        {"name": f"i{i}", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1m"}}}
        for i in range(n)
    ]
    return {"initContainers": started}


def disks(n):
    return {"volumes": [{"name": f"v{i}", "gcePersistentDisk": {"pdName": f"d{i}"}} for i in range(n)]}


def monitors(n):
    return {"volumes": [{"name": "v", "rbd": {"monitors": [f"10.0.0.{i}" for i in range(n)], "image": "a"}}]}


def volume_claims(n):
    return {"volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"d{i}"}} for i in range(n)]}


def device_claims(n):
    return {"resourceClaims": [{"name": f"c{i}", "resourceClaimName": f"d{i}"} for i in range(n)]}


def labels(n):
    return {"labels": {f"k{i}": f"v{i}" for i in range(n)}}


def namespaces(n):
    wanted = {**term(0), "namespaces": [f"ns-{i}" for i in range(n)]}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [wanted]}}}


def gates(n):
    return {"schedulingGates": [{"name": f"g{i}"} for i in range(n)]}


ASKED = (
    pod_affinity,
    pod_anti_affinity,
    preferred_terms,
    topology_keys_of_terms,
    terms_times_values,
    node_affinity("NotIn", "x"),
    node_affinity("Gt", "5"),
    node_affinity("Lt", "5"),
    node_preferences,
    node_names,
    node_selector,
    hard_constraints,
    soft_constraints,
    values_of_a_constraint,
    requirements_of_a_constraint,
    match_label_keys,
    tolerations,
    resources,
    host_ports,
    containers,
    sidecar_containers,
    disks,
    monitors,
    volume_claims,
    device_claims,
    labels,
    namespaces,
    gates,
)


@pytest.mark.parametrize("shape", ASKED)
def test_a_cycle_is_linear_in_what_the_pod_says(shape):
    def work(n):
        core, asked = a_core(), a_pod(**shape(n))
        return lambda: decide(core, asked)

    assert growth(work, 40) < LINEAR


@pytest.mark.parametrize("shape", ASKED)
def test_a_second_attempt_is_no_more_work_than_the_first(shape):
    """A pod that fits nowhere comes back again and again."""
    core, asked = a_core(), a_pod(**shape(40))
    first = calls(lambda: decide(core, asked))

    assert calls(lambda: decide(core, asked)) <= 1.2 * first


PLACED = tuple(each for each in ASKED if each not in (gates, node_names))


@pytest.mark.parametrize("shape", PLACED)
def test_placing_a_pod_is_linear_in_what_it_says(shape):
    def work(n):
        core, asked = a_core(), with_counted_labels(a_pod(**shape(n)))
        return lambda: place(core, asked)

    assert growth(work, 40) < LINEAR


@pytest.mark.parametrize("shape", PLACED)
def test_the_next_ordinary_pod_pays_no_more_than_linearly(shape):
    def work(n):
        core = a_core()
        place(core, a_pod("hostile", **shape(n)))
        return lambda: decide(core, a_pod("next", labels={"app": "x"}))

    assert growth(work, 40) < LINEAR


def test_tolerations_are_not_multiplied_by_taints():
    """Tolerations are the user's, and clusters have hundreds of distinct taints."""

    def work(n):
        taints = [{"key": f"t{i}", "value": f"v{i}", "effect": "NoSchedule"} for i in range(n)]
        core, pod = a_core(taints=taints), a_pod(**tolerations(n))
        return lambda: decide(core, pod)

    assert growth(work, 40) < LINEAR


def test_requirements_are_not_multiplied_by_classes_of_pods():
    """Requirements are the user's, and so are the labels of many small pods."""

    def work(n):
        core = a_core()
        for i in range(n):
            place(core, a_pod(f"x{i}", labels={"app": f"a{i}"}))
        pod = a_pod(**requirements_of_a_constraint(n))
        return lambda: decide(core, pod)

    assert growth(work, 40) < LINEAR


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_values_are_looked_up_and_not_compared_one_by_one(operator):
    values = tuple(CountedText(f"v{i:04}") for i in range(400))
    selector = compile_selector(LabelSelector(match_expressions=(Requirement("app", operator, values),)))
    asked = {"app": CountedText("v0399")}
    selector.matches(asked)  # The values are read once, when they are first needed.

    assert calls(lambda: selector.matches(asked)) < 100
