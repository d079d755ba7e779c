"""What kubectl and an API server get from the group's paths."""

import asyncio

import pytest

from berth.aggregated_api import kinds
from berth.aggregated_api.discovery import AGGREGATED, OPENAPI_V3_PATH
from berth.aggregated_api.errors import NoSuchObjectError, TooManyQuestionsError, UnavailableError
from berth.aggregated_api.kinds import ROOT
from berth.aggregated_api.leaders import Leader, Published
from berth.aggregated_api.replicas import ASKED_BY, SENT_ON_BY
from berth.aggregated_api.routing import ExplainRequest
from berth.aggregated_api.sending_on import SendingOn
from berth.aggregated_api.text_pages import profile_page
from berth.client.errors import ConfigurationError
from berth.serving.access import Access, allow_all
from berth.serving.request_bounds import MAX_ANSWERED_OF_USER
from tests.failures.reporting import reports
from tests.unit.aggregated_api.serving import POD, PROXY, client, serving

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
EXPLANATION = {"pod": "default/p", "profile": "berth", "cause": "no room", "state": {"kind": "Unschedulable"}}
HEAD = {"apiVersion": "explain.berth.dev/v1alpha1", "kind": "Explanation"}


async def explain(asked, *, was_sent_on):
    """Explain one pod; another is unknown, and of a third the leader is."""
    del was_sent_on
    if asked.name == "gone":
        raise NoSuchObjectError('pod "gone" not found')
    if asked.name == "later":
        raise UnavailableError("b leads")
    if asked.name == "enough":
        raise TooManyQuestionsError("explanations for this user took long", 7)
    return EXPLANATION | ({"query": asked.query} if asked.query else {})


@pytest.fixture
async def kubectl():
    async with serving(explain, allow_all) as server, client(server) as session:
        yield session


async def fetch(session, path, method="GET", **headers):
    async with session.request(method, path, headers=headers) as response:
        return response.status, await response.json(content_type=None)


async def test_an_explanation(kubectl):
    """The document is an object of the API with the pod's name."""
    named = {"metadata": {"name": "p", "namespace": "default"}}

    assert (200, HEAD | named | EXPLANATION) == await fetch(kubectl, POD)


async def test_the_page_of_the_command():
    """Who asks for text, as the live page does, gets what the command prints."""
    profile = {"profile": "p", "cause": "All is well.", "rejectedBy": [], "messages": [], "extenders": []}
    answer = {**profile, "plugins": {"filter": ["NodeName"]}}

    async def explain_profile(_asked, *, was_sent_on):
        del was_sent_on
        return answer

    path, asked = kinds.PROFILE.path("", "p"), {"Accept": "text/plain"}
    async with (
        serving(explain_profile, allow_all) as server,
        client(server) as session,
        session.get(path, headers=asked) as response,
    ):
        text = await response.text()

    assert [*profile_page(answer)] == text.splitlines()
    assert "text/plain" == response.content_type


async def test_how_to_explain(kubectl):
    """The query goes along."""
    assert {"allReasons": "true"} == (await fetch(kubectl, f"{POD}?allReasons=true"))[1]["query"]


async def test_a_table(kubectl):
    """`kubectl get` prints a row."""
    _, table = await fetch(kubectl, POD, Accept=TABLE)

    assert ("Table", ["p", "berth", "Unschedulable", "no room"]) == (table["kind"], table["rows"][0]["cells"])
    assert ["Name", "Scheduler", "State", "Cause"] == [one["name"] for one in table["columnDefinitions"]]


CAUSE = {"cause": "why"}


@pytest.mark.parametrize(
    ("kind", "document", "cells"),
    [
        (kinds.POD_GROUP, {"pods": 3, "scheduled": 1, "fitTogether": 2, **CAUSE}, [3, 1, 2, "why"]),
        (kinds.NODE, {"pods": 3, "waiting": 2, "fitting": 1, **CAUSE}, [3, 2, 1, "why"]),
        (kinds.PROFILE, {"pods": 3, **CAUSE}, [3, "why"]),
        (
            kinds.QUEUE,
            {"counts": {"active": 4, "backoff": 3, "unschedulable": 2, "gated": 1, "inFlight": 0}},
            [4, 3, 2, 1],
        ),
    ],
    ids=lambda value: getattr(value, "resource", ""),
)
async def test_the_other_kinds(kind, document, cells):
    """Each is an object of its name at its path, and a row of a table."""
    namespace = "team" if kind.namespaced else ""
    path = kind.path(namespace, "x")

    async def explained(asked, *, was_sent_on):
        assert (kind, namespace, "x", False) == (asked.kind, asked.namespace, asked.name, was_sent_on)
        return document

    async with serving(explained, allow_all) as server, client(server) as session:
        found, (_, table) = await fetch(session, path), await fetch(session, path, Accept=TABLE)
        listed, _ = await fetch(session, kind.collection(namespace))

    metadata = {"name": "x", **({"namespace": namespace} if namespace else {})}
    head = {"apiVersion": "explain.berth.dev/v1alpha1", "kind": kind.name, "metadata": metadata}
    assert (200, head | document) == found
    assert ["x", *cells] == table["rows"][0]["cells"]
    assert len(table["columnDefinitions"]) == 1 + len(cells)
    assert 405 == listed


async def test_a_profile_may_have_a_name_that_no_object_has(kubectl):
    """Whatever may be a schedulerName and a part of a path."""
    assert 200 == (await fetch(kubectl, kinds.QUEUE.path("", "My_Profile")))[0]
    for name in ("a/b", "...", "a b"):
        code, status = await fetch(kubectl, kinds.QUEUE.path("", name))
        assert (404, True) == (code, "a profile may not have that name" in status["message"])


@reports(
    "explanation-refused", answer="`berth explain`, kubectl: a Status with its reason, such as `NotFound`"
)
@pytest.mark.parametrize(
    ("name", "code", "reason", "text"),
    [
        ("gone", 404, "NotFound", 'podexplanations.explain.berth.dev "gone" not found: pod "gone" not found'),
        (
            "A",
            404,
            "NotFound",
            'podexplanations.explain.berth.dev "A" not found: a pod may not have that name',
        ),
        ("later", 503, "ServiceUnavailable", "b leads"),
    ],
)
async def test_failures(kubectl, name, code, reason, text):
    """A Status names the object and says why."""
    found, status = await fetch(kubectl, POD.removesuffix("p") + name)

    assert (code, reason, text) == (found, status["reason"], status["message"])
    assert (name, "podexplanations") == (status["details"]["name"], status["details"]["kind"])


@pytest.mark.parametrize(
    ("method", "path", "text"),
    [
        ("GET", f"{ROOT}/podexplanations", "name a pod"),
        ("GET", f"{ROOT}/namespaces/default/podexplanations", "name a pod"),
        ("DELETE", POD, "can't be written"),
        ("POST", f"{ROOT}/namespaces/default/podexplanations", "can't be written"),
    ],
)
async def test_verbs_that_there_are_not(kubectl, method, path, text):
    """They are refused with what to do instead."""
    code, status = await fetch(kubectl, path, method)

    assert (405, "MethodNotAllowed") == (code, status["reason"])
    assert text in status["message"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/apis", "APIGroupList"), ("/apis/explain.berth.dev", "APIGroup"), (ROOT, "APIResourceList")],
)
async def test_discovery(kubectl, path, kind):
    assert kind == (await fetch(kubectl, path))[1]["kind"]


async def test_aggregated_discovery(kubectl):
    """A client that asks for it gets groups and resources at once."""
    async with kubectl.get("/apis", headers={"Accept": f"{AGGREGATED},application/json"}) as response:
        document = await response.json(content_type=None)

    version = document["items"][0]["versions"][0]
    assert AGGREGATED == response.headers["Content-Type"]
    assert "v1alpha1" == version["version"]
    assert {
        ("podexplanations", "Namespaced"),
        ("podgroupexplanations", "Namespaced"),
        ("nodeexplanations", "Cluster"),
        ("profileexplanations", "Cluster"),
        ("queues", "Cluster"),
    } == {(one["resource"], one["scope"]) for one in version["resources"]}


async def test_openapi(kubectl):
    """The index leads to the document."""
    _, index = await fetch(kubectl, "/openapi/v3")
    _, document = await fetch(kubectl, index["paths"]["apis/explain.berth.dev/v1alpha1"]["serverRelativeURL"])

    assert OPENAPI_V3_PATH.removeprefix("/openapi/v3") in next(iter(document["paths"]))


async def test_an_object_is_what_is_authorized(caplog):
    """The review is about the pod's name in its namespace; the log says who asked, and what came of it."""
    asked = []

    async def review(question):
        asked.append(question.resource)
        return Access("jane", allowed=False)

    caplog.set_level("INFO")
    async with serving(explain, review) as server, client(server) as session:
        code, status = await fetch(session, POD)

    assert ("get", "explain.berth.dev", "default", "p") == (
        asked[0].verb,
        asked[0].group,
        asked[0].namespace,
        asked[0].name,
    )
    assert (403, "Forbidden") == (code, status["reason"])
    assert 'User "jane" cannot get resource "podexplanations"' in status["message"]
    line = next(record.getMessage() for record in caplog.records if "audit" in record.msg)
    assert "user=jane verb=get" in line
    assert line.endswith("decision=forbid")


def leader(server, **changes):
    said = {"identity": "b", "address": f"127.0.0.1:{server.port}", "certificate": server.fingerprint}
    return Leader("l", Published(**{**said, "profiles": ("berth",), **changes}))


async def bearer(_leader):
    return "Bearer t"


async def test_sending_on():
    """The leader is asked as this scheduler, and knows that the request was sent on."""
    seen = []

    async def review(question):
        seen.append(question.token)
        return Access("system:serviceaccount:berth-system:berth-main", allowed=True)

    async def explain_here(asked, *, was_sent_on):
        return {"asked": asked[1:], "was_sent_on": was_sent_on}

    asked = ExplainRequest(kinds.POD, "default", "p", {"q": "1"}, "jane é\n")
    async with serving(explain_here, review) as server:
        found = await SendingOn("a", bearer)(leader(server), asked)

    assert ["t"] == seen
    assert ([*asked[1:]], True) == (found["asked"], found["was_sent_on"])


async def test_for_whom_an_explanation_is(tmp_path):
    """The user that the API server names; a header that says otherwise counts only with a replica's token."""
    users = []

    async def explain_for(asked, *, was_sent_on):
        del was_sent_on
        users.append(asked.user)
        return EXPLANATION

    async def review(question):
        return Access(question.user.username if question.user else "berth-main", allowed=True)

    forged = {"X-Remote-User": "jane", SENT_ON_BY: "a", ASKED_BY: "root"}
    async with serving(explain_for, review) as server:
        async with client(server, PROXY.issue("front-proxy"), tmp_path) as session:
            await fetch(session, POD, **forged)
        async with client(server) as session:
            await fetch(session, POD, Authorization="Bearer t", **{ASKED_BY: "root"})
            await fetch(session, POD, Authorization="Bearer t", **{ASKED_BY: "root", SENT_ON_BY: "a"})

    assert ["jane", "berth-main", "root"] == users


async def test_a_user_who_has_asked_for_too_much(kubectl):
    """It is told when to ask again, by this replica or by the one that leads."""
    path = POD.removesuffix("p") + "enough"
    async with kubectl.get(path) as response:
        assert (429, "7") == (response.status, response.headers["Retry-After"])
        assert 7 == (await response.json())["details"]["retryAfterSeconds"]
    async with serving(explain, allow_all) as server:
        with pytest.raises(TooManyQuestionsError) as refused:
            await SendingOn("a", bearer)(leader(server), ExplainRequest(kinds.POD, "default", "enough"))

    assert 7 == refused.value.retry_seconds


async def test_one_user_leaves_places_to_others(tmp_path):
    """More requests than one may have at once are refused; those of another user are answered."""
    go_on, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def explain_slowly(asked, *, was_sent_on):
        del was_sent_on
        if asked.user == "jane":
            begun.release()
            await go_on.wait()
        return EXPLANATION

    async def review(question):
        return Access(question.user.username, allowed=True)

    pair = PROXY.issue("front-proxy")
    async with serving(explain_slowly, review) as server, client(server, pair, tmp_path) as session:
        jane, joe = {"X-Remote-User": "jane"}, {"X-Remote-User": "joe"}
        slow = [asyncio.create_task(fetch(session, POD, **jane)) for _ in range(MAX_ANSWERED_OF_USER)]
        for _ in slow:
            await begun.acquire()
        refused, answered = await asyncio.gather(fetch(session, POD, **jane), fetch(session, POD, **joe))
        go_on.set()
        statuses = [status for status, _ in await asyncio.gather(*slow)]

    assert (429, 200) == (refused[0], answered[0])
    assert [200] * MAX_ANSWERED_OF_USER == statuses


@reports("leader-not-asked", answer="`berth explain`, kubectl: which replica leads, and why it was not asked")
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"certificate": "00" * 32}, "does not answer"),
        ({"certificate": "no hex"}, "does not answer"),
        ({"address": "127.0.0.1:1"}, "does not answer"),
        ({"address": ""}, "serves no secure port"),
    ],
)
async def test_a_leader_that_cannot_be_asked(changes, text):
    """The error names it; what serves with another certificate sees no token."""
    seen = []

    async def review(question):
        seen.append(question.token)
        return Access("a", allowed=True)

    async with serving(explain, review) as server:
        with pytest.raises(UnavailableError, match=f"b leads.*{text}"):
            await SendingOn("a", bearer)(leader(server, **changes), ExplainRequest(kinds.POD, "default", "p"))

    assert [] == seen


async def test_no_token_to_ask_the_leader_with():
    """A token file that is gone is named, and the leader is sent nothing."""

    async def none(_leader):
        raise ConfigurationError("token", "", "no such file", "mount it")

    async with serving(explain, allow_all) as server:
        with pytest.raises(UnavailableError, match=r"b leads.*no token to ask it with: token: no such file"):
            await SendingOn("a", none)(leader(server), ExplainRequest(kinds.POD, "default", "p"))


async def test_what_a_leader_refuses():
    """Its own words come through: there is no such pod, or it can't say now."""
    async with serving(explain, allow_all) as server:
        with pytest.raises(NoSuchObjectError, match='pod "gone" not found'):
            await SendingOn("a", bearer)(leader(server), ExplainRequest(kinds.POD, "default", "gone"))
        with pytest.raises(UnavailableError, match="answers 503: b leads"):
            await SendingOn("a", bearer)(leader(server), ExplainRequest(kinds.POD, "default", "later"))
