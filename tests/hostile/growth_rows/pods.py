"""Fields of pods."""

import json

from berth.objects.label_selector import MAX_VALUES
from tests.benchmarks.workloads import read_pod
from tests.hostile.arena import pod
from tests.hostile.deciding import HOST, PREFERRED, REQUIRED, a_core, a_pod, decide, place
from tests.hostile.growth_rows.row import (
    RUNS,
    Cycle,
    Row,
    explained,
    lists_of_a_term,
    message_about,
    simulated,
)
from tests.hostile.test_shapes_of_pods import ASKED
from tests.hostile.whole_core import pod_document


def of_pod(field, shape, max_entries=None):
    """A field of a pod: as it comes, at its own cycle, at that of the next pod, and when it is explained."""

    def fields(n):
        """Unlike those of any other pod: nothing is known of its template."""
        said = shape(n)
        return {**said, "labels": {**said.get("labels", {}), "run": f"r{next(RUNS)}"}}

    def stages(n):
        written = pod_document("hostile", **fields(n))
        data = json.dumps(written).encode()
        own, beside, explaining = a_core(), a_core(), a_core()
        asked, asked_about = a_pod("hostile", **fields(n)), a_pod("hostile", **fields(n))
        arriving, placed = a_pod("hostile", **fields(n)), place(beside, a_pod("hostile", **fields(n)))
        return {
            "decoding": lambda: read_pod(data),
            "message": message_about(written),
            "its own cycle": lambda: decide(own, asked),
            "taken over": lambda: place(own, arriving),
            "others' cycles": lambda: decide(beside, a_pod("next", labels={"app": "x"})),
            "explain": lambda: explained(explaining.framework, asked_about, explaining.snapshot),
            "its end": lambda: beside.cache.remove_pod(placed),
            "simulate": simulated([pod("simulated", **fields(n))]),
        }

    def cycle(n):
        core = a_core()
        return Cycle(core.algorithm, core.framework, core.snapshot, a_pod("hostile", **fields(n)))

    return Row("Pod", field, shape, stages, cycle, max_entries)


def terms_by_key(n):
    return {
        "affinity": {
            "podAntiAffinity": {
                REQUIRED: [
                    {"topologyKey": f"k{i}", "namespaceSelector": {}, "labelSelector": {}} for i in range(n)
                ]
            }
        }
    }


def terms_that_mean_everybody(n):
    absent = ({"matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"}]} for i in range(n))
    terms = [{"topologyKey": HOST, "namespaceSelector": {}, "labelSelector": each} for each in absent]
    return {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}


def equal_terms(n):
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
    return {"affinity": {"podAffinity": {REQUIRED: [term] * n}}}


def labels_and_expressions(n):
    """A selector, each list of which repeats."""
    return {
        "matchLabels": {f"l{i}": "v" for i in range(n)},
        "matchExpressions": [
            {"key": "app", "operator": "NotIn", "values": [f"v{i}" for i in range(n)]},
            *({"key": f"k{i}", "operator": "DoesNotExist"} for i in range(n)),
        ],
    }


def lists_of_a_pod_affinity_term(n):
    """Each list of one term, required and preferred: of both selectors, and the keys added to them."""
    keys = [f"a{i}" for i in range(n)]
    others = [f"b{i}" for i in range(n)]
    term = {
        "topologyKey": HOST,
        "labelSelector": labels_and_expressions(n),
        "namespaceSelector": labels_and_expressions(n),
        "matchLabelKeys": keys,
        "mismatchLabelKeys": others,
    }
    return {
        "labels": dict.fromkeys((*keys, *others), "x"),
        "affinity": {
            "podAntiAffinity": {REQUIRED: [term]},
            "podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {**term, "namespaces": keys}}]},
        },
    }


def lists_of_a_node_affinity_term(n):
    terms = lists_of_a_term(n)
    preferred = [{"weight": 1, "preference": term} for term in terms]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}, PREFERRED: preferred}}}


def preferred_anti_affinity(n):
    terms = [{"topologyKey": HOST, "labelSelector": {"matchLabels": {f"k{i}": "x"}}} for i in range(n)]
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {"affinity": {"podAntiAffinity": {PREFERRED: weighted}}}


def labels_of_a_constraint(n):
    selector = {"matchLabels": {f"l{i}": "v" for i in range(n)}}
    constraint = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": selector}]}


def lists_of_an_init_container(n):
    """Its ports, amounts and rules; of the pod the overhead of its runtime class."""
    amounts = {"cpu": "1m", **{f"example.com/r{i}": "0" for i in range(n)}}
    rules = [{"action": "Restart"}] * n
    ports = [{"containerPort": i + 1, "hostPort": i + 1} for i in range(n)]
    started = {"name": "i", "image": "x", "ports": ports, "resources": {"requests": amounts}}
    return {
        "initContainers": [{**started, "restartPolicyRules": rules}],
        "container": {"restartPolicyRules": rules},
        "overhead": amounts,
    }


def owner_references(n):
    return {
        "owners": [{"apiVersion": "v1", "kind": "Job", "name": f"o{i}", "uid": f"u{i}"} for i in range(n)]
    }


def annotations(n):
    return {"annotations": {f"k{i}": "v" for i in range(n)}}


def env(n):
    return {"container": {"env": [{"name": f"E{i}", "value": "v"} for i in range(n)]}}


def conditions(n):
    listed = [{"type": f"example.com/c{i}", "status": "True"} for i in range(n)]
    return {"status": {"phase": "Pending", "conditions": listed}}


def container_statuses(n):
    """As many statuses as containers: a kubelet's, of a pod that is being resized."""
    amounts = {"requests": {"cpu": "1m"}}
    listed = [{"name": f"c{i}", "allocatedResources": {"cpu": "1m"}, "resources": amounts} for i in range(n)]
    containers = [{"name": f"c{i}", "image": "x", "resources": amounts} for i in range(n)]
    status = {"phase": "Pending", "containerStatuses": listed}
    return {"containers": containers, "status": status}


def pod_resources(n):
    """Amounts of the pod as a whole, and what it was given of them."""
    amounts = {"cpu": "1m", **{f"hugepages-{i}Mi": "0" for i in range(n)}}
    requests = {"requests": amounts, "limits": amounts}
    return {"resources": requests, "status": {"phase": "Pending", "resources": requests}}


def amounts_of_statuses(n):
    """A container and sidecars that are being resized: amounts of the one, statuses of the others."""
    amounts = {"cpu": "1m", **{f"example.com/r{i}": "0" for i in range(n)}}
    held = {"requests": {**amounts, "cpu": "2m"}, "limits": amounts}
    given = {"requests": {"cpu": "2m"}}
    status = {
        "phase": "Pending",
        "containerStatuses": [{"name": "main", "resources": held, "allocatedResources": amounts}],
        "initContainerStatuses": [
            {"name": f"i{i}", "resources": given, "allocatedResources": {} if i else amounts}
            for i in range(n)
        ],
        "allocatedResources": amounts,
        "resources": {"requests": amounts},
    }
    one = {"image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1m"}}}
    return {
        "container": {"resources": {"requests": amounts}},
        "initContainers": [{"name": f"i{i}", **one} for i in range(n)],
        "status": status,
    }


def claims_made_for_a_pod(n):
    made = [{"name": f"c{i}", "resourceClaimName": f"d{i}"} for i in range(n)]
    mappings = [{"containerName": "main", "resourceName": f"e/r{i}", "requestName": "r"} for i in range(n)]
    extended = {"resourceClaimName": "x", "requestMappings": mappings}
    status = {"resourceClaimStatuses": made, "extendedResourceClaimStatus": extended}
    templates = [{"name": f"c{i}", "resourceClaimTemplateName": "t"} for i in range(n)]
    return {"resourceClaims": templates, "status": {"phase": "Pending", **status}}


def pod_conditions_of_resize(n):
    listed = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}] * n
    return {"status": {"phase": "Pending", "conditions": listed}}


OWN = (
    terms_by_key,
    terms_that_mean_everybody,
    equal_terms,
    preferred_anti_affinity,
    lists_of_a_pod_affinity_term,
    lists_of_a_node_affinity_term,
    labels_of_a_constraint,
    lists_of_an_init_container,
    owner_references,
    annotations,
    env,
)
OF_STATUS = (
    conditions,
    container_statuses,
    amounts_of_statuses,
    pod_resources,
    pod_conditions_of_resize,
    claims_made_for_a_pod,
)


def names(shape):
    """What a shape is called in the table."""
    return shape.__qualname__.partition(".")[0].replace("_", " ")


def pods_fields():
    """The rows of pods, by name; several shapes of one maker are numbered."""
    found = {}
    for shape in (*ASKED, *OWN, *OF_STATUS):
        name = names(shape)
        found[name if name not in found else f"{name} {len(found)}"] = shape
    return found


OF_A_CONSTRAINT = ("requirements of a constraint", "values of a constraint")
BOUNDED = {
    **dict.fromkeys(("match label keys", "terms times values", *OF_A_CONSTRAINT), MAX_VALUES),
    "labels of a constraint": MAX_VALUES,
    "lists of a pod affinity term": MAX_VALUES // 10,
}
"""How many entries are read at most where the API server sets no bound: more are refused with a reason."""

ROWS = [of_pod(field, shape, BOUNDED.get(field)) for field, shape in pods_fields().items()]
