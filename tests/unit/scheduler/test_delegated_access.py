"""The API server decides who sees the endpoints."""

import json

import pytest

from berth.client.errors import DeadlineError
from berth.scheduler.delegated_access import KEPT_SECONDS, DelegatedAccess
from berth.scheduler.gate import Access, Asked

USERS = {
    "t-jane": {"username": "jane", "groups": ["devs"]},
    "t-root": {"username": "root", "groups": ["system:masters"]},
}


class ApiServer:
    """Knows the users above and lets jane get /metrics."""

    def __init__(self):
        self.seen = []
        self.error = None

    async def create(self, resource, namespace, body):
        if self.error:
            raise self.error
        spec = json.loads(body)["spec"]
        self.seen.append((resource.plural, namespace, spec))
        if resource.plural == "tokenreviews":
            user = USERS.get(spec["token"])
            return json.dumps({"status": {"authenticated": bool(user), "user": user or {}}}).encode()
        wanted = {"path": "/metrics", "verb": "get"}
        allowed = spec["user"] == "jane" and spec["nonResourceAttributes"] == wanted
        return json.dumps({"status": {"allowed": allowed}}).encode()


@pytest.fixture
def server():
    return ApiServer()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(Asked("t-jane", "get", "/metrics"), Access("jane", True), id="allowed"),
        pytest.param(Asked("t-jane", "delete", "/metrics"), Access("jane", False), id="another verb"),
        pytest.param(Asked("t-root", "get", "/configz"), Access("root", True), id="superuser"),
        pytest.param(Asked("", "get", "/metrics"), Access("system:anonymous", False), id="no token"),
        pytest.param(Asked("t-x", "get", "/metrics"), None, id="nobody's token"),
    ],
)
async def test_verdict(server, asked, expected):
    """The token says who it is, the access review whether they may."""
    assert expected == await DelegatedAccess(server)(asked)


async def test_review_names_the_groups(server):
    """The API server is told everything that it said about the user."""
    await DelegatedAccess(server)(Asked("t-jane", "get", "/metrics"))
    plural, namespace, spec = server.seen[1]

    assert ("subjectaccessreviews", "", "jane", ["devs"]) == (plural, namespace, spec["user"], spec["groups"])


async def test_answers_are_kept_for_a_while(server):
    """The same question is asked again only once the answer is old."""
    now = [0.0]
    access = DelegatedAccess(server, monotonic=lambda: now[0])
    asked = Asked("t-jane", "get", "/metrics")
    await access(asked)
    now[0] = KEPT_SECONDS - 0.1
    await access(asked)
    fresh = len(server.seen)
    now[0] = KEPT_SECONDS
    await access(asked)

    assert (2, 4) == (fresh, len(server.seen))


async def test_no_answer_means_no(server, caplog):
    """While the API server can't be asked nobody is let in, and the log says why."""
    server.error = DeadlineError("late")

    assert Access("system:anonymous", False) == await DelegatedAccess(server)(Asked("t-jane", "get", "/x"))
    assert ["access not reviewed path=/x error=late"] == caplog.messages
