"""What a collector gets of calls that fail, over each transport."""

import json
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from berth.client.resources import PODS
from berth.demo.processes import Child
from tests.e2e.collector import collecting
from tests.e2e.default_cluster import CONFIGURATION, default_cluster
from tests.e2e.failing_plugin import TRANSPORTS
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler_at_work import node

pytestmark = pytest.mark.e2e

TIMEOUTS = {"patient": "2s", "failing": "300ms"}
"""By plugin, in the order in which they are enabled."""
PROFILES = """
podMaxBackoffSeconds: 1
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: patient
      - name: failing
"""


class Sidecars:
    """Both plugins as processes, over one transport."""

    def __init__(self, folder, sockets, transport):
        self._folder, self._sockets, self._transport = folder, sockets, transport
        self._children = {}
        self.listed = folder / "plugins.yaml"

    async def start(self, name):
        """Start a process of that plugin."""
        socket = self._sockets / f"{name}.sock"
        command = [sys.executable, "-m", "tests.e2e.failing_plugin", name, self._transport, str(socket)]
        child = self._children[name] = await Child.start(name, command, self._folder / f"{name}.log")
        await child.wait_for(socket, PATIENCE_SECONDS)
        return {"name": name, "address": f"unix:{socket}", "timeout": TIMEOUTS[name]}

    async def stop(self):
        """End them."""
        for child in self._children.values():
            await child.stop()


@asynccontextmanager
async def sidecars(folder, transport):
    """Both at work, and the list of them."""
    with tempfile.TemporaryDirectory(prefix="berth-") as sockets:
        found = Sidecars(folder, Path(sockets), transport)
        try:
            entries = [await found.start(name) for name in TIMEOUTS]
            document = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": entries}
            found.listed.write_text(json.dumps(document))
            yield found
        finally:
            await found.stop()


def pod(name, **failures):
    """A pod about which these plugins fail in these ways."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1m"}}}
    labels = {f"failure/{plugin}": failure for plugin, failure in failures.items()}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


PODS_WITH_FAILURES = {
    "good": {},
    "late": {"failing": "silent"},
    "both-late": {"patient": "silent", "failing": "silent"},
    "cancelled": {"patient": "refused", "failing": "silent"},
    "refused": {"failing": "refused"},
    "short": {"failing": "short"},
}


def said(document):
    """What the pod's condition says of its attempt; empty where there was none."""
    for each in document.get("status", {}).get("conditions", ()):
        if each["type"] == "PodScheduled":
            return each.get("message", "scheduled")
    return ""


@pytest.fixture(params=TRANSPORTS)
async def transport(request, tmp_path, monkeypatch):
    """The transport, with what a collector has got of a pod for each failure."""
    seen = {}

    def look(_, document):
        seen[document["metadata"]["name"]] = said(document)

    async def attempt(running, name, words, **failures):
        await running.create(PODS, [pod(name, **failures)])
        await running.reach(lambda: words in seen.get(name, "") != "")
        await running.delete(PODS, name, "default")

    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        async with sidecars(tmp_path, request.param) as plugins:
            flags = [f"--plugins={plugins.listed}"]
            cluster = default_cluster(tmp_path, [node("n0"), node("n1")], CONFIGURATION + PROFILES, flags)
            async with cluster as running, running.watching(look):
                for name, failures in PODS_WITH_FAILURES.items():
                    await attempt(running, name, "", **failures)
                    # An answer, so that no circuit opens.
                    await attempt(running, f"after-{name}", "scheduled")
                await attempt(running, "circuit", "not called", failing="short")
                await attempt(running, "after-circuit", "scheduled")
                await attempt(running, "lost", "UNAVAILABLE", failing="lost")
        yield request.param, collector.spans


class Attempt:
    """A pod's attempt as the collector has it."""

    def __init__(self, spans, pod_name, *, last=False):
        roots = [each for each in spans if not each.parent and each.attributes["k8s.pod.name"] == pod_name]
        self.root = max(roots, key=lambda root: root.attributes["berth.attempt"] * (1 if last else -1))
        self._spans = {each.span: each for each in spans if each.trace == self.root.trace}

    @property
    def spans(self):
        """All of them."""
        return self._spans.values()

    def above(self, span):
        """The names of the spans around that one, the innermost first."""
        names = []
        while span.parent:
            span = self._spans[span.parent]
            names.append(span.name)
        return names

    def one(self, service, name):
        """The only span of that name by that process."""
        (found,) = self.all(service, name)
        return found

    def all(self, service, name):
        """The spans of that name by that process."""
        return [each for each in self.spans if (each.service, each.name) == (service, name)]

    def call(self, plugin="failing"):
        """The scheduler's span of the call."""
        return self.one("berth-scheduler", f"{plugin} Filter")

    def outcome(self, plugin="failing"):
        """Status code and kind of error of the call."""
        attributes = self.call(plugin).attributes
        return attributes.get("rpc.response.status_code"), attributes.get("error.type")


ENDS = {
    "good": ("OK", None),
    "late": ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"),
    "both-late": ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"),
    "cancelled": ("CANCELLED", "CANCELLED"),
    "refused": ("FAILED_PRECONDITION", "FAILED_PRECONDITION"),
    "short": ("OK", "ProtocolError"),
    "lost": ("UNAVAILABLE", "UNAVAILABLE"),
}
"""How the span of the call ends."""
CYCLE = ["Filter", "scheduling cycle", "schedule pod"]


async def test_failures(transport):
    """Each failure has its code at the call, hangs where the page draws it, and ends where it failed."""
    system, spans = transport[0] if transport[0] == "ttrpc" else "grpc", transport[1]
    attempts = {name: Attempt(spans, name) for name in ENDS}

    assert {name: attempt.outcome() for name, attempt in attempts.items()} == ENDS
    for name, attempt in attempts.items():
        call = attempt.call()
        around = CYCLE if name in ("cancelled", "both-late") else ["failing", *CYCLE]
        assert around == attempt.above(call), name
        assert (name == "good") == (call.failure is None)
        assert system == call.attributes["rpc.system.name"]
        assert call.attributes["server.address"].endswith("failing.sock.ttrpc" if system == "ttrpc" else "k")
        assert "did not end" not in {each.failure for each in attempt.spans}
        answers = attempt.all("failing", "failing/Filter")
        assert {(system, call.span)} >= {
            (each.attributes["rpc.system.name"], each.parent) for each in answers
        }
    assert_points(attempts)
    assert_repetition(attempts["refused"])
    assert_ends(attempts["both-late"])
    assert_no_call(Attempt(spans, "circuit", last=True))


def assert_points(attempts):
    """The plugin that failed, the extension point and the cycle have the attempt's error."""
    for name in ENDS.keys() - {"good", "both-late", "cancelled"}:
        attempt = attempts[name]
        failures = [
            attempt.one("berth-scheduler", each).failure for each in ("failing", "Filter", "scheduling cycle")
        ]
        assert [attempt.root.attributes["berth.message"]] * 3 == failures, name


def assert_repetition(attempt):
    """A call that was repeated is one span, with both answers of the plugin below it."""
    assert ["failing/Filter"] * 2 == [each.name for each in attempt.all("failing", "failing/Filter")]


def assert_ends(attempt):
    """A call that fails while another is awaited ended when it failed."""
    assert attempt.call("failing").ended < attempt.call("patient").ended


def assert_no_call(attempt):
    """An open circuit makes no call; the plugin's turn says why."""
    assert [] == attempt.all("berth-scheduler", "failing Filter")
    assert (
        "not called: plugin failing: 1 verdicts for 2 nodes"
        in attempt.one("berth-scheduler", "failing").failure
    )
