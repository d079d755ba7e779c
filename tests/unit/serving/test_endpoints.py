"""The endpoints answer over HTTPS as kube-scheduler's do."""

import errno
import logging
import socket
import ssl
from contextlib import asynccontextmanager

import aiohttp
import pytest

from berth.serving.access import Access, AccessReview, allow_all, forbid_all
from berth.serving.endpoints import Endpoints, SecureServer
from berth.serving.errors import StartError, TooManyReviewsError
from berth.serving.health import HealthChecks, NotedCheck
from berth.serving.listening import listen
from berth.serving.self_signed import self_signed
from berth.serving.serving_certificate import NamedCertificate, SelfMade
from tests.failures.reporting import reports


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate and its key, in files."""
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "tls.crt", folder / "tls.key"
    for file, pem in zip(files, self_signed(), strict=True):
        file.write_bytes(pem)
    return files


@pytest.fixture
def serve(certificate):
    """Start a server on a free port; yields a client that trusts its certificate."""

    @asynccontextmanager
    async def serving(endpoints=None, **options):
        listener = socket.create_server(("127.0.0.1", 0))
        server = await SecureServer.start(
            listener, NamedCertificate(*map(str, certificate)), endpoints or make_endpoints(), **options
        )
        trust = ssl.create_default_context(cafile=certificate[0])
        connector = aiohttp.TCPConnector(ssl=trust, force_close=True)
        try:
            async with aiohttp.ClientSession(
                f"https://127.0.0.1:{server.port}", connector=connector
            ) as client:
                yield client
        finally:
            await server.close()

    return serving


async def nothing():
    """Do nothing."""


def make_endpoints(**changes):
    return Endpoints(
        **{
            "metrics": lambda _names: b"up 1\n",
            "reset_metrics": nothing,
            "configuration": lambda: {"kind": "KubeSchedulerConfiguration"},
        }
        | changes
    )


async def fetch(client, path, method="GET", **options):
    async with client.request(method, path, **options) as response:
        return response.status, await response.text()


@pytest.mark.parametrize("path", ["/healthz", "/metrics", "/none"])
async def test_every_answer_says_who_gave_it(serve, path):
    """Those that are refused and those that there are none for, too."""
    endpoints = make_endpoints(headers={"Berth-Version": "1"})
    async with serve(endpoints, review=forbid_all) as client, client.get(path) as response:
        assert "1" == response.headers["Berth-Version"]


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_health_needs_no_leave(serve, path):
    """Health is for everybody, and one word when all is well."""
    async with serve(review=forbid_all) as client:
        assert (200, "ok") == await fetch(client, path)


async def test_other_paths_are_forbidden(serve):
    """Without leave, a path that exists and one that does not look the same."""
    async with serve(review=forbid_all) as client:
        for path in ("/metrics", "/nothing"):
            async with client.get(path) as response:
                status = await response.json()
                message = f'forbidden: User "system:anonymous" cannot get path "{path}"'
                assert (403, message) == (response.status, status["message"])


async def test_review_is_asked_with_the_token(serve):
    """The bearer token, the verb and the path decide."""
    asked = []

    async def review(question):
        asked.append(question)
        return Access("jane", allowed=True) if question.token == "t" else None

    async with serve(review=review) as client:
        good = await fetch(client, "/metrics", headers={"Authorization": "Bearer t"})
        bad, _ = await fetch(client, "/configz", headers={"Authorization": "Bearer x"})

    assert (200, "up 1\n") == good
    assert 401 == bad
    assert [AccessReview("t", "get", "/metrics"), AccessReview("x", "get", "/configz")] == asked


@pytest.mark.parametrize(
    ("accepted", "answer"),
    [
        ("text/plain", ("up 1\n", "text/plain")),
        ("application/openmetrics-text;version=1.0.0,*/*;q=0.1", ("# EOF\n", "application/openmetrics-text")),
    ],
)
async def test_metrics_in_the_text_that_is_asked_for(serve, accepted, answer):
    """OpenMetrics, which has exemplars, is for those who name it."""
    endpoints = make_endpoints(open_metrics=lambda _names: b"# EOF\n")
    async with (
        serve(endpoints, always_allowed=("/metrics",)) as client,
        client.get("/metrics", headers={"Accept": accepted}) as response,
    ):
        assert answer == (await response.text(), response.content_type)


async def test_allowed_prefix(serve):
    """A path ending in a star allows all that begin like it."""
    async with serve(review=forbid_all, always_allowed=("/met*",)) as client:
        assert (200, "up 1\n") == await fetch(client, "/metrics")
        assert 403 == (await fetch(client, "/healthz"))[0]


async def test_configuration(serve):
    """/configz shows the effective configuration under the component's key."""
    async with serve(review=allow_all) as client, client.get("/configz") as response:
        assert {"componentconfig": {"kind": "KubeSchedulerConfiguration"}} == await response.json()


async def test_reset_of_metrics(serve):
    """DELETE starts the metrics afresh."""
    resets = []

    async def reset():
        resets.append(1)

    endpoints = make_endpoints(reset_metrics=reset)
    async with serve(endpoints, review=allow_all) as client:
        assert (200, "metrics reset\n") == await fetch(client, "/metrics", "DELETE")

    assert [1] == resets


async def test_unknown_path(serve):
    """Who may see everything sees that there is nothing."""
    async with serve(review=allow_all) as client:
        assert (404, "404 page not found\n") == await fetch(client, "/nothing")


PASSED = "livez check passed\n"
NOT_SYNCED = "handlers are not fully synchronized"


@pytest.fixture
def unready():
    return make_endpoints(readyz={"shutdown": lambda: "", "sched-handler-sync": lambda: NOT_SYNCED})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "/readyz",
            (500, "[+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\nreadyz check failed\n"),
        ),
        ("/readyz?exclude=sched-handler-sync", (200, "ok")),
        (
            "/readyz?exclude=sched-handler-sync&verbose",
            (200, "[+]shutdown ok\n[+]sched-handler-sync excluded: ok\nreadyz check passed\n"),
        ),
        (
            "/livez?verbose&exclude=x",
            (
                200,
                '[+]ping ok\nwarn: some health checks cannot be excluded: no matches for "x"\n' + PASSED,
            ),
        ),
        ("/readyz/shutdown", (200, "ok")),
        ("/readyz/sched-handler-sync", (500, f"internal server error: {NOT_SYNCED}\n")),
        ("/readyz/ping", (404, "404 page not found\n")),
    ],
)
async def test_health_in_detail(serve, unready, path, expected):
    """Checks are listed where one fails or on demand; one by name shows its reason."""
    async with serve(unready, review=allow_all) as client:
        assert expected == await fetch(client, path)


async def test_indicators(serve, unready):
    """/metrics/slis shows each check's outcome and counts them."""
    async with serve(unready, review=allow_all) as client:
        _, text = await fetch(client, "/metrics/slis")

    assert 'kubernetes_healthcheck{name="sched-handler-sync",type="readyz"} 0' in text.splitlines()
    assert 'kubernetes_healthchecks_total{name="ping",type="livez",status="success"} 1' in text.splitlines()


@pytest.mark.parametrize(
    ("method", "body", "expected"),
    [
        ("PUT", "4", (200, "successfully set klog.logging.verbosity to 4")),
        ("PUT", "loud", (400, "failed to parse verbosity 'loud'\n")),
        ("GET", None, (406, "unrecognized http method\n")),
    ],
)
async def test_verbosity(serve, method, body, expected):
    """The verbosity of logs is set by PUT alone."""
    endpoints = make_endpoints(set_verbosity=lambda _: None)
    async with serve(endpoints, review=allow_all) as client:
        assert expected == await fetch(client, "/debug/flags/v", method, data=body)


async def test_verbosity_unless_profiling(serve):
    """Without a way to set the verbosity the path is not there."""
    async with serve(review=allow_all) as client:
        assert 404 == (await fetch(client, "/debug/flags/v", "PUT", data="4"))[0]


async def test_certificate_made_on_the_spot():
    """Without a certificate the server makes one that holds for localhost."""
    server = await SecureServer.start(socket.create_server(("127.0.0.1", 0)), SelfMade(), make_endpoints())
    connector = aiohttp.TCPConnector(ssl=False, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as client:
        assert (200, "ok") == await fetch(client, f"https://127.0.0.1:{server.port}/healthz")
    await server.close()


def test_port_0_serves_nothing():
    """Port 0 is how the server is switched off."""
    assert listen("127.0.0.1", 0) is None


@reports(
    "port-taken", answer="the start ends: `failed to listen on` that address, `choose another --secure-port`"
)
def test_port_in_use():
    """A port that is taken is named, with the remedy."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        expected = (
            f"failed to listen on 127.0.0.1:{port}: address already in use: choose another --secure-port"
        )

        with pytest.raises(StartError, match=expected):
            listen("127.0.0.1", port)


def test_certificate_that_is_missing():
    """The flags and the reason are named."""
    with pytest.raises(StartError, match=r"--tls-cert-file /no/crt.*No such file or directory"):
        NamedCertificate("/no/crt", "/no/key")


def test_reason_is_withheld_from_lists():
    """A list of checks does not tell why one fails."""
    report = HealthChecks("readyz", {"a": lambda: "secret"}).report(verbose=True)

    assert not report.healthy
    assert "secret" not in report.text


@pytest.mark.parametrize(
    ("reason", "listed", "single"),
    [
        ("", "[+]a ok: busy for 2 s\n", "ok: busy for 2 s"),
        ("stuck", "[-]a failed: reason withheld: busy for 2 s\n", "internal server error: stuck\n"),
    ],
)
def test_notes_are_shown(reason, listed, single):
    """A note says how things are, in the list and by name; the reason is by name alone."""
    checks = HealthChecks("livez", {"a": NotedCheck(lambda: reason, lambda: "busy for 2 s")})

    assert listed in checks.report(verbose=True).text
    assert single == checks.single("a").text


async def test_too_many_unknown_clients(serve):
    """They are asked to come again, and when."""

    async def review(_asked):
        raise TooManyReviewsError

    async with serve(review=review) as client, client.get("/metrics") as response:
        assert (429, "1") == (response.status, response.headers["Retry-After"])


@reports(
    "page-breaks",
    log="`page not made`, with the path and the cause",
    answer="`500`, `internal server error`, without the cause",
)
async def test_a_page_that_breaks(serve, caplog):
    """It is a server error, with the cause in the log and not in the answer."""
    async with serve(make_endpoints(configuration=lambda: 1 / 0), review=allow_all) as client:
        assert (500, "internal server error\n") == await fetch(client, "/configz")
    assert ["page not made path=/configz"] == caplog.messages


class Exhausted(socket.socket):
    """A mock of a process without file descriptors: the first tries to accept a connection fail."""

    refusals = 3

    def accept(self):
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


@reports("connection-refused", log="`connection not accepted`, with the cause; it waits, and the idlest ends")
async def test_a_connection_that_can_not_be_accepted(caplog, monkeypatch):
    """It waits in the listener's queue, and is answered as soon as it can be; the log has one line."""
    monkeypatch.setattr("berth.serving.connections.PAUSE_SECONDS", 0.0)
    listener = Exhausted()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = await SecureServer.start(listener, SelfMade(), make_endpoints())
    url = f"https://127.0.0.1:{server.port}/healthz"
    async with aiohttp.ClientSession() as client, client.get(url, ssl=False) as answer:
        assert 200 == answer.status
    await server.close()

    text = "connection not accepted, clients wait until there is one err=[Errno 24] Too many open files"
    assert [text] == [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
