"""The kinds of berth.dev: what they fill in, what they refuse, and what they say then."""

from pathlib import Path

import pytest

from berth.operator.definitions import plugin_definition, scheduler_definition
from tests.manifests.__main__ import write
from tests.unit.operator.kit import PLUGINS, SCHEDULERS, plugin, scheduler, serving

KUSTOMIZE = Path(__file__).parents[3] / "kustomize"
P = [{"schedulerName": "a"}]


@pytest.fixture
def api():
    return serving()


def election(**changes):
    return {"leaderElection": changes}


def profile(**changes):
    return {"profiles": [{"schedulerName": "a", **changes}]}


def points(**sets):
    return profile(plugins=sets)


BAD_SCHEDULERS = [
    ({"profiles": None}, "spec.profiles", "Required value"),
    ({"profiles": []}, "spec.profiles", "should have at least 1 items"),
    ({"profiles": [*P, *P]}, "spec.profiles[1]", 'Duplicate value: {"schedulerName":"a"}'),
    ({"profiles": [{"schedulerName": ""}]}, "spec.profiles[0].schedulerName", "at least 1 chars long"),
    (
        profile(percentageOfNodesToScore=101),
        "spec.profiles[0].percentageOfNodesToScore",
        "less than or equal to 100",
    ),
    (
        points(score={"enabled": [{"name": "X", "weight": -1}]}),
        "spec.profiles[0].plugins.score.enabled[0].weight",
        "greater than or equal to 0",
    ),
    (
        points(filter={"enabled": [{"name": "*"}]}),
        "spec.profiles[0].plugins.filter.enabled",
        "name each plugin; '*' works in `disabled` only",
    ),
    (
        points(filter={"disabled": [{"name": "*"}, {"name": "NodeName"}]}),
        "spec.profiles[0].plugins.filter.disabled",
        "remove the other entries of `disabled`, or '*'",
    ),
    (
        points(filter={"enabled": [{"name": "X"}, {"name": "X"}]}),
        "spec.profiles[0].plugins.filter.enabled[1]",
        "Duplicate value",
    ),
    (
        profile(pluginConfig=[{"args": {}}]),
        "spec.profiles[0].pluginConfig[0].name",
        "Required value",
    ),
    ({"replicas": -1}, "spec.replicas", "greater than or equal to 0"),
    ({"replicas": "2"}, "spec.replicas", "must be of type integer"),
    (
        {"replicas": 2, **election(leaderElect=False)},
        "spec.leaderElection.leaderElect",
        "set leaderElection.leaderElect to true, or replicas to 1",
    ),
    (
        election(leaderElect=True, leaseDuration="5s"),
        "spec.leaderElection.renewDeadline",
        "shorten it, or lengthen leaseDuration",
    ),
    (
        election(leaderElect=True, retryPeriod="9s"),
        "spec.leaderElection.retryPeriod",
        "shorten it, or lengthen renewDeadline",
    ),
    (election(leaseDuration="15"), "spec.leaderElection.leaseDuration", "such as 200ms, 15s or 1m30s"),
    (election(retryPeriod="0s"), "spec.leaderElection.retryPeriod", "write a duration above zero"),
    (election(resourceName=""), "spec.leaderElection.resourceName", "at least 1 chars long"),
    (
        {"podInitialBackoffSeconds": 20},
        "spec.podMaxBackoffSeconds",
        "must not be less than podInitialBackoffSeconds",
    ),
    ({"podMaxBackoffSeconds": 0}, "spec.podMaxBackoffSeconds", "greater than or equal to 1"),
    ({"parallelism": 0}, "spec.parallelism", "greater than or equal to 1"),
    ({"clientConnection": {"qps": -2}}, "spec.clientConnection.qps", "greater than or equal to -1"),
    ({"featureGates": {"X": "yes"}}, "spec.featureGates.X", "must be of type boolean"),
    ({"imagePullPolicy": "Sometimes"}, "spec.imagePullPolicy", 'supported values: "Always"'),
    ({"image": ""}, "spec.image", "at least 1 chars long"),
    (
        {"resources": {"requests": {"cpu": "lots"}}},
        "spec.resources.requests[cpu]",
        "write an amount such as 500m, 2 or 1Gi",
    ),
    ({"telemetry": {"tracing": {}}}, "spec.telemetry.tracing.endpoint", "Required value"),
    (
        {"telemetry": {"tracing": {"endpoint": "collector:4317"}}},
        "spec.telemetry.tracing.endpoint",
        "write the collector's URL, such as http://collector:4317",
    ),
    ({"telemetry": {"logging": {"format": "xml"}}}, "spec.telemetry.logging.format", "supported values"),
    (
        {"rollout": {"maxSurge": 0}},
        "spec.rollout.maxUnavailable",
        "maxSurge and maxUnavailable cannot both be 0",
    ),
    (
        {"pod": {"schedulerName": "packing"}},
        "spec.pod.schedulerName",
        "cannot place its own pods; name another scheduler than one of the profiles",
    ),
    ({"plugins": [{"name": "x"}, {"name": "x"}]}, "spec.plugins[1]", "Duplicate value"),
    (
        {"extenders": [{"urlPrefix": "here"}]},
        "spec.extenders[0].urlPrefix",
        "beginning with http:// or https://",
    ),
    (
        {"extenders": [{"urlPrefix": "http://x", "prioritizeVerb": "p"}]},
        "spec.extenders[0].weight",
        "needs a weight of 1 or more",
    ),
    (
        {"extenders": [{"urlPrefix": "http://x", "bindVerb": "b"}] * 2},
        "spec.extenders",
        "only one extender can bind; remove bindVerb from the others",
    ),
]
PROFILED = {"policy": {"profiles": [{"name": "p"}]}}
BAD_SCHEDULERS += [
    ({"descheduler": {}}, "spec.descheduler.policy", "Required value"),
    ({"descheduler": {"policy": {}}}, "spec.descheduler.policy.profiles", "Required value"),
    ({"descheduler": {"policy": {"profiles": []}}}, "spec.descheduler.policy.profiles", "at least 1 items"),
    *(
        (
            {"descheduler": {**PROFILED, "schedule": schedule}},
            "spec.descheduler.schedule",
            "write five fields as for cron, such as */30 * * * *",
        )
        for schedule in ("often", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * JA *", "@never")
    ),
    (
        {"descheduler": {**PROFILED, "maxEvictionsPerMinute": 0}},
        "spec.descheduler.maxEvictionsPerMinute",
        "greater than or equal to 1",
    ),
    (
        {"descheduler": {**PROFILED, "patience": "5"}},
        "spec.descheduler.patience",
        "such as 200ms, 15s or 1m30s",
    ),
    (
        {"descheduler": {**PROFILED, "activeDeadlineSeconds": 1}},
        "spec.descheduler.activeDeadlineSeconds",
        "greater than or equal to 60",
    ),
    ({"descheduler": {**PROFILED, "image": ""}}, "spec.descheduler.image", "at least 1 chars long"),
    (
        {"descheduler": PROFILED, "plugins": [{"name": "x"}]},
        "spec.descheduler",
        "remove plugins and extenders, or descheduler",
    ),
]
BAD_PLUGINS = [
    ({"image": None}, "spec", "give either image, for a sidecar, or address"),
    ({"image": "x", "address": "unix:/x"}, "spec", "give either image, for a sidecar, or address"),
    ({"address": "somewhere"}, "spec.address", "write unix:/path/to.sock or host:port"),
    ({"address": "h:1", "args": ["-v"]}, "spec", "remove them, or give image instead of address"),
    ({"tls": {"secretName": "x"}}, "spec.tls", "is for a plugin at host:port"),
    ({"address": "unix:/x", "tls": {"secretName": "x"}}, "spec.tls", "a socket is private by its mode"),
    ({"address": "h:1", "tls": {}}, "spec.tls.secretName", "Required value"),
    ({"automountServiceAccountToken": True, "address": "h:1"}, "spec", "describe a sidecar"),
    ({"extensionPoints": ["preScore"]}, "spec.extensionPoints[0]", 'supported values: "'),
    ({"extensionPoints": []}, "spec.extensionPoints", "should have at least 1 items"),
    ({"extensionPoints": ["score", "score"]}, "spec.extensionPoints[1]", "Duplicate value"),
    (
        {"extensionPoints": ["score"], "failurePolicy": {"filter": "Fail"}},
        "spec.failurePolicy",
        "remove it there, or add it to extensionPoints",
    ),
    (
        {"failurePolicy": {"filter": "Retry"}},
        "spec.failurePolicy.filter",
        'supported values: "Fail", "Ignore"',
    ),
    (
        {"extensionPoints": ["queueSort"], "shadow": True},
        "spec.shadow",
        "can't be true for a plugin that orders the queue",
    ),
    ({"exemptPods": {}}, "spec.exemptPods", "give namespaces or matchLabels"),
    ({"timeout": "fast"}, "spec.timeout", "such as 200ms, 15s or 1m30s"),
    ({"weight": 0}, "spec.weight", "greater than or equal to 1"),
]


def refusal(answer):
    status, body = answer
    assert 422 == status, body
    return {(one["field"], one["message"]) for one in body["details"]["causes"]}


@pytest.mark.parametrize(("spec", "field", "words"), BAD_SCHEDULERS)
def test_bad_scheduler(api, spec, field, words):
    """A Scheduler that cannot work is refused, with the field and what to do about it."""
    spec = {"profiles": [{"schedulerName": "packing"}], **spec}
    given = {key: value for key, value in spec.items() if value is not None}
    found = refusal(api.post(SCHEDULERS, {**scheduler(), "spec": given}))

    assert any(field == where and words in said for where, said in found), found


@pytest.mark.parametrize(("spec", "field", "words"), BAD_PLUGINS)
def test_bad_plugin(api, spec, field, words):
    """A SchedulerPlugin that cannot work is refused, with the field and what to do about it."""
    found = refusal(api.post(PLUGINS, plugin(**spec)))

    assert any(field == where and words in said for where, said in found), found


def test_long_name(api):
    """A name that would not leave room for the names of what is made of it is refused."""
    assert "40 characters or fewer" in str(refusal(api.post(SCHEDULERS, scheduler("n" * 41))))


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.b", "give it a name without dots"), ("operator", "berth-operator is the operator")],
)
def test_reserved_name(api, name, words):
    """Names that the operator has itself, or that no Service could have, are refused."""
    assert words in str(refusal(api.post(SCHEDULERS, scheduler(name))))


def test_long_name_beside_a_descheduler(api):
    """A CronJob's name is short, so the name of a Scheduler with one is shorter still."""
    status, answer = api.post(SCHEDULERS, scheduler("a" * 35, descheduler=PROFILED))

    assert 422 == status
    assert "with spec.descheduler the name has 34 characters or fewer" in answer["message"]


@pytest.mark.parametrize(
    "schedule", ["*/5 * * * *", "0 3 * * MON-FRI", "0,30 8-18 1 jan,dec ?", "@hourly", "15  4 * * 6"]
)
def test_schedules(api, schedule):
    """What a CronJob takes is taken."""
    status, made = api.post(SCHEDULERS, scheduler(descheduler={**PROFILED, "schedule": schedule}))

    assert (201, True) == (status, made["spec"]["descheduler"]["dryRun"])


def test_defaults(api):
    """What is left out is filled in, so that a Scheduler of one profile is complete."""
    status, made = api.post(SCHEDULERS, scheduler(leaderElection={}, rollout={}))

    assert 201 == status, made
    assert 1 == made["spec"]["replicas"]
    expected = {"leaderElect": True, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
    assert expected == made["spec"]["leaderElection"]
    assert (1, 0) == (made["spec"]["rollout"]["maxSurge"], made["spec"]["rollout"]["maxUnavailable"])


def test_columns(api):
    """`kubectl get` shows profiles, replicas and conditions."""
    api.post(SCHEDULERS, scheduler(profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}], replicas=2))
    status = {"profiles": ["a", "b"], "observedGeneration": 1}
    api.patch(f"{SCHEDULERS}/main/status", {"status": status})
    _, table = api.get(SCHEDULERS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")

    named = dict(
        zip((one["name"] for one in table["columnDefinitions"]), table["rows"][0]["cells"], strict=True)
    )
    assert ("main", '["a","b"]', 2) == (named["Name"], named["Profiles"], named["Desired"])
    assert {"Ready", "Available", "Degraded", "Plugins", "Cause", "Age"} <= named.keys()


def test_written_out(tmp_path):
    """The definitions that are shipped are those of the source."""
    for path in write(tmp_path):
        assert (tmp_path / path).read_text() == (KUSTOMIZE / path).read_text(), "run `make manifests`"


def undescribed(schema, path):
    """The fields without a text, by their paths."""
    for name, field in schema.get("properties", {}).items():
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from undescribed(field, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from undescribed(schema[inner], path)


@pytest.mark.parametrize(
    "definition", [scheduler_definition(), plugin_definition()], ids=["Scheduler", "Plugin"]
)
def test_kubectl_explains_every_field(definition):
    """Each field of each version has a text, which `kubectl explain` shows with the default.

    That of the metadata is the API server's: it refuses a definition that has one.
    """
    versions = [one["schema"]["openAPIV3Schema"] for one in definition["spec"]["versions"]]

    assert [".metadata"] * len(versions) == [field for one in versions for field in undescribed(one, "")]


INT32 = 2**31 - 1
ABSENT = ("not given", "never asked", "required with", "give it or", "without effect")
"""How a text says what holds where an optional field without a default is left out."""


def described(schema, path=""):
    """Each field below a schema: its path, itself, and whether it may be left out."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field, name not in schema.get("required", ())
        yield from described(field, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from described(schema["items"], path)


def spec(definition):
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def bounds(field):
    """The bounds that the API server holds a field to, and kubectl does not show."""
    found = {field[name] for name in ("maxItems", "maxProperties", "maxLength") if name in field}
    found |= {field[name] for name in ("minimum", "maximum") if name in field and field[name] != INT32}
    return set() if "enum" in field else found


@pytest.mark.parametrize(
    "definition", [scheduler_definition(), plugin_definition()], ids=["Scheduler", "Plugin"]
)
def test_kubectl_explains_bounds_and_what_is_not_given(definition):
    """The text of a field has its bounds, and what holds without it where kubectl shows no default."""
    fields = list(described(spec(definition)))
    unbound = [
        path
        for path, field, _ in fields
        if any(f"{one}" not in field["description"] for one in bounds(field))
    ]
    unsaid = [
        path
        for path, field, optional in fields
        if optional
        and not {"default", "properties"} & field.keys()
        and not any(one in field["description"] for one in ABSENT)
    ]

    assert ([], []) == (unbound, unsaid)
