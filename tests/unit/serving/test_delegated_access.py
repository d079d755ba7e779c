"""The API server decides who sees the endpoints."""

import asyncio
import json

import pytest

from berth.aggregated_api.replicas import AUDIENCE
from berth.client.errors import DeadlineError
from berth.serving.access import Access, AccessReview
from berth.serving.delegated_access import KEPT_SECONDS, MAX_KEPT, STRANGERS_AT_ONCE, DelegatedAccess
from berth.serving.errors import TooManyReviewsError
from tests.failures.reporting import reports

USERS = {
    "t-jane": {"username": "jane", "groups": ["devs"]},
    "t-root": {"username": "root", "groups": ["system:masters"]},
}


class ApiServer:
    """Knows the users above and lets jane get /metrics."""

    def __init__(self):
        self.seen = []
        self.error = None
        self.audiences = []

    async def create(self, resource, namespace, body):
        if self.error:
            raise self.error
        spec = json.loads(body)["spec"]
        self.seen.append((resource.plural, namespace, spec))
        if resource.plural == "tokenreviews":
            user = USERS.get(spec["token"])
            status = {"authenticated": bool(user), "user": user or {}, "audiences": self.audiences}
            return json.dumps({"status": status}).encode()
        wanted = {"path": "/metrics", "verb": "get"}
        allowed = spec["user"] == "jane" and spec["nonResourceAttributes"] == wanted
        return json.dumps({"status": {"allowed": allowed}}).encode()


@pytest.fixture
def server():
    return ApiServer()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(AccessReview("t-jane", "get", "/metrics"), Access("jane", True), id="allowed"),
        pytest.param(AccessReview("t-jane", "delete", "/metrics"), Access("jane", False), id="another verb"),
        pytest.param(AccessReview("t-root", "get", "/configz"), Access("root", True), id="superuser"),
        pytest.param(AccessReview("", "get", "/metrics"), Access("system:anonymous", False), id="no token"),
        pytest.param(AccessReview("t-x", "get", "/metrics"), None, id="an unknown token"),
    ],
)
async def test_verdict(server, asked, expected):
    """The token says who it is, the access review whether they may."""
    assert expected == await DelegatedAccess(server)(asked)


async def test_another_replica_is_known_by_a_token_that_is_for_replicas(server):
    """The API server's own tokens, for which an authenticator names no audience or another one, are none."""
    asked = AccessReview("t-jane", "get", "/metrics", audience=AUDIENCE)
    for said in ([], ["https://kubernetes.default.svc"]):
        server.audiences = said
        assert None is await DelegatedAccess(server)(asked)
    server.audiences = [AUDIENCE]
    assert Access("jane", True) == await DelegatedAccess(server)(asked)

    reviews = [spec for plural, _, spec in server.seen if plural == "tokenreviews"]
    assert [[AUDIENCE]] * 3 == [spec["audiences"] for spec in reviews]


async def test_the_two_kinds_of_tokens_are_not_mistaken_for_each_other(server):
    """What is kept of one answer says nothing of the other."""
    access = DelegatedAccess(server)

    assert Access("jane", True) == await access(AccessReview("t-jane", "get", "/metrics"))
    assert None is await access(AccessReview("t-jane", "get", "/metrics", audience=AUDIENCE))


async def test_review_names_the_groups(server):
    """The API server is sent everything that it said about the user."""
    await DelegatedAccess(server)(AccessReview("t-jane", "get", "/metrics"))
    plural, namespace, spec = server.seen[1]

    assert ("subjectaccessreviews", "", "jane", ["devs"]) == (plural, namespace, spec["user"], spec["groups"])


async def test_answers_are_kept_for_a_while(server):
    """The same question is asked again only once the answer is old."""
    now = [0.0]
    access = DelegatedAccess(server, monotonic=lambda: now[0])
    asked = AccessReview("t-jane", "get", "/metrics")
    await access(asked)
    now[0] = KEPT_SECONDS - 0.1
    await access(asked)
    fresh = len(server.seen)
    now[0] = KEPT_SECONDS
    await access(asked)

    assert (2, 4) == (fresh, len(server.seen))


@reports("access-not-reviewed", log="`access not reviewed`, with path and cause; the request is refused")
async def test_no_answer_means_no(server, caplog):
    """While the API server can't be asked no request is let in, and the log says why."""
    server.error = DeadlineError("late")

    assert Access("system:anonymous", False) == await DelegatedAccess(server)(
        AccessReview("t-jane", "get", "/x")
    )
    assert ["access not reviewed path=/x err=late"] == caplog.messages


def jane(path="/metrics"):
    return AccessReview("t-jane", "get", path)


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def access(server, now):
    return DelegatedAccess(server, monotonic=lambda: now[0])


async def flood(access, count, begin=0):
    """Ask with that many tokens that are of no user; how many questions were turned away."""
    asked = [access(AccessReview(f"made-up-{begin + i}", "get", "/metrics")) for i in range(count)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    return sum(isinstance(answer, TooManyReviewsError) for answer in answers)


async def test_without_a_token_nothing_is_asked(server, access):
    """Anonymous clients see what is always allowed, which is decided before."""
    assert Access("system:anonymous", False) == await access(AccessReview("", "get", "/metrics"))
    assert [] == server.seen


async def test_a_flood_of_tokens_is_no_flood_of_reviews(server, access):
    """Beyond a few at once they are turned away."""
    assert 1000 - STRANGERS_AT_ONCE == await flood(access, 1000)
    assert STRANGERS_AT_ONCE == len(server.seen)


async def test_known_users_pass_a_flood(server, access, now):
    """A token that was good lately is reviewed anew, whatever the others do."""
    await access(jane())
    now[0] = KEPT_SECONDS
    await flood(access, 1000)
    before = len(server.seen)

    assert Access("jane", True) == await access(jane())
    assert before + 2 == len(server.seen)


async def test_a_known_user_who_asks_for_what_is_forbidden(server, access):
    """Paths that were never allowed are as many questions as strangers may put."""
    answers = [access(jane(f"/{i}")) for i in range(1000)]
    refused = await asyncio.gather(*answers, return_exceptions=True)

    assert 1000 - STRANGERS_AT_ONCE < sum(isinstance(each, TooManyReviewsError) for each in refused)
    assert STRANGERS_AT_ONCE == len(server.seen)


async def test_strangers_are_asked_about_again_with_time(access, now):
    """One for each part of a second that their rate gives."""
    await flood(access, 1000)
    now[0] = 1.0

    assert 100 - 5 == await flood(access, 100, begin=1000)


async def test_one_question_for_all_who_wait(server, access):
    """Many requests at once with one token are one review of it, and one of what it may see."""
    answers = await asyncio.gather(*(access(jane()) for _ in range(50)))

    assert [Access("jane", True)] * 50 == answers
    assert 2 == len(server.seen)


async def test_an_answer_comes_though_the_first_to_ask_has_gone(access):
    """The others wait for the same question."""
    gone, stays = asyncio.create_task(access(jane())), asyncio.create_task(access(jane()))
    await asyncio.sleep(0)
    gone.cancel()

    assert Access("jane", True) == await stays


async def test_answers_about_strangers_displace_no_known_user(server, access, now):
    """More of them than are kept leave those that were good where they are."""
    await access(jane())
    for i in range(2 * MAX_KEPT):
        now[0] += 1e-3
        await flood(access, 1, begin=i)
    asked = len(server.seen)
    await access(jane())

    assert asked == len(server.seen)


async def test_an_error_is_not_kept(server, access, caplog):
    """The next request asks again."""
    server.error = DeadlineError("late")
    await access(jane())
    server.error = None

    assert Access("jane", True) == await access(jane())
    assert 1 == len(caplog.messages)
