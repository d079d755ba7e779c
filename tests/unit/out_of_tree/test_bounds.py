"""Texts, rates, keys and folders: the parts that bound what a plugin can do."""

import logging
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.config.out_of_tree.pod_metadata import key_problem, may_write
from berth.config.out_of_tree.sidecars import PluginTls, is_loopback, unprotected
from berth.framework.pacing import TokenBucket
from berth.out_of_tree.connections.requeue_stream import paced
from berth.out_of_tree.errors import NotConnectedError, ProtocolError
from berth.out_of_tree.handshake_validation import kind_problems, problems_of
from berth.out_of_tree.limits import LINES_AT_ONCE, NAMED_PODS, REQUEUE_ALL_COST
from berth.out_of_tree.plugin_log import PluginLog
from berth.out_of_tree.plugin_text import bounded
from berth.out_of_tree.transport.socket_access import check_socket, held_socket, shared_folder
from berth_plugin_proto import identity_pb2, queueing_pb2
from tests.failures.reporting import reports
from tests.hostile.work import calls


class Clock:
    """A clock that a test moves."""

    seconds = 0.0

    def __call__(self):
        return self.seconds


@given(st.text(), st.integers(min_value=8, max_value=64))
def test_bounded_texts(text, most):
    """No text is longer than its bound, or holds a control character; a short and clean one is left alone."""
    shown = bounded(text, most)

    assert len(shown.encode()) <= most
    assert not any(ord(character) < 32 or ord(character) == 127 for character in shown)
    if text.isascii() and text.isprintable() and len(text) <= most:
        assert text == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\x1b[31m", "a\\nb\\x1b[31m"),
        ("ab\u202ecd", "ab\\u202ecd"),
        ("x" * 20, "x" * 13 + "…"),
        ("é" * 20, "é" * 6 + "…"),
        ("Größe", "Größe"),
    ],
)
def test_what_a_text_becomes(text, shown):
    """Control and direction characters are escaped; what is cut ends with an ellipsis between characters."""
    assert shown == bounded(text, 16)


def test_a_long_text_costs_no_more_than_its_bound():
    """Ten megabytes are looked at as far as they are shown."""
    assert calls(lambda: bounded("\n" * 10_000_000)) <= calls(lambda: bounded("\n" * 2000)) + 1


def test_log_lines(caplog):
    """What is too much for the log is counted, and said with the next line."""
    clock = Clock()
    log = PluginLog(logging.getLogger("plugins"), clock)
    for _ in range(LINES_AT_ONCE + 5):
        log.warning("it failed plugin=%s", "p")
    clock.seconds += 60
    log.warning("it failed plugin=%s", "p")

    assert LINES_AT_ONCE + 1 == len(caplog.messages)
    assert "it failed plugin=p left_out=5" == caplog.messages[-1]


async def _requeued(*messages):
    for message in messages:
        yield message


async def test_a_flood_of_requeues():
    """A plugin that says a thousand times to look at all pods is read at the rate that is allowed."""
    waits = []

    async def wait(seconds):
        waits.append(seconds)

    everything = queueing_pb2.RequeueResponse(requeue_all=queueing_pb2.AllRejected())
    stream = paced("p", _requeued(*[everything] * 1000), TokenBucket(1000, 1000, Clock()), None, wait)

    assert 1000 == len([message async for message in stream])
    assert (999 * REQUEUE_ALL_COST - 999) / 1000 == pytest.approx(waits[-1])


async def test_too_many_names():
    """A message that names more pods than there may be ends the stream."""
    uids = map(str, range(NAMED_PODS + 1))
    message = queueing_pb2.RequeueResponse(requeue=queueing_pb2.PodSet(uids=uids))
    stream = paced("p", _requeued(message), TokenBucket(1, 1, Clock()), None)

    with pytest.raises(ProtocolError, match="names 65537 pods in one message, at most 65536 are read"):
        await anext(stream)


@pytest.mark.parametrize(
    ("group", "version", "resource", "problem"),
    [
        ("scheduling.x-k8s.io", "v1alpha1", "podgroups", ""),
        ("", "v1", "nodes", ""),
        ("", "v1", "secrets", "of the core group plugins see"),
        ("", "v1", "configmaps", "of the core group plugins see"),
        ("", "v1", "../../api/v1/secrets?x=", "not plural.version.group in DNS names"),
        ("..", "v1", "secrets", "not plural.version.group in DNS names"),
        ("a/b", "v1", "things", "not plural.version.group in DNS names"),
        ("a.example", "", "things", "not plural.version.group in DNS names"),
        ("a.example", "v1", "things/status", "not plural.version.group in DNS names"),
        ("a.example", "v1", "things\n", "not plural.version.group in DNS names"),
        ("a." * 200 + "b", "v1", "things", "not plural.version.group in DNS names"),
    ],
)
def test_kinds(group, version, resource, problem):
    """Kinds are named in DNS names, and of the core group only those that schedulers read anyway."""
    found = list(kind_problems(identity_pb2.WatchedResource(group=group, version=version, resource=resource)))

    assert bool(problem) == bool(found)
    assert all(problem in each for each in found)


POD_FIELDS = identity_pb2.PodFields
EVENT = identity_pb2.EventInterest


@pytest.mark.parametrize(
    ("capabilities", "problem"),
    [
        ({"pod_fields": POD_FIELDS(paths=["/spec/²/x"])}, "a pod field is no JSON pointer"),
        ({"pod_fields": POD_FIELDS(paths=['/metadata/labels/a"b'])}, "a pod field is no JSON pointer"),
        ({"pod_fields": POD_FIELDS(paths=["/a" * 100])}, "a pod field is no JSON pointer"),
        ({"pod_fields": POD_FIELDS(paths=["/" + "9" * 5000])}, "a pod field is no JSON pointer"),
        ({"pod_fields": POD_FIELDS(paths=map("/{}".format, range(500)))}, "500 pod fields, at most 128"),
        ({"events": [EVENT(resource="Node")] * 500}, "500 event interests, at most 128"),
        ({"events": [EVENT(resource="a\nb")]}, "neither Node, Pod nor plural.version.group"),
        (
            {"events": [EVENT(resource="Pod", label_selector="a," * 999)]},
            "selector of events of Pod is longer",
        ),
        ({"events": [EVENT(resource="Pod", changed_fields=["x"])]}, "a field of Pod is no JSON pointer"),
        ({"extension_points": [2] * 100}, "100 extension points, at most 64"),
        ({"arguments_schema": b"x" * (1 << 20)}, "at most 262144 are read"),
    ],
)
def test_introductions(capabilities, problem):
    """An introduction that is too large, or has what can't be worked with, says so."""
    answer = identity_pb2.HandshakeResponse(capabilities=identity_pb2.Capabilities(**capabilities))

    assert problem in next(problems_of(answer))


@pytest.mark.parametrize("version", ["1.0 beta", "x" * 65, "1\n2"])
def test_versions(version):
    """A version is one word of printable characters."""
    assert "its version is not" in next(problems_of(identity_pb2.HandshakeResponse(version=version)))


@pytest.mark.parametrize(
    ("key", "allowed", "may"),
    [
        ("gpu/devices", None, True),
        ("gpu.example.com/devices", None, True),
        ("gpux.example.com/devices", None, False),
        ("devices", None, False),
        ("team", ["team"], True),
        ("example.com/a", ["example.com/*"], True),
        ("sub.example.com/a", ["example.com/*"], False),
        ("gpu/devices", [], False),
        ("pod-template-hash", ["pod-template-hash"], False),
        ("kubernetes.io/x", ["kubernetes.io/*"], False),
        ("app.kubernetes.io/name", ["app.kubernetes.io/name"], False),
        ("scheduling.x-k8s.io/pod-group", ["scheduling.x-k8s.io/pod-group"], True),
    ],
)
def test_who_may_write_what(key, allowed, may):
    """A plugin writes the keys of its entry, or of its own name; never those of Kubernetes itself."""
    assert may is may_write(key, "gpu", allowed)


@pytest.mark.parametrize("key", ["*", "a b", "k8s.io/*", "job-name", "x/y/*", ""])
def test_keys_that_no_entry_can_have(key):
    """An entry names keys, or all of a prefix, that plugins may write at all."""
    assert key_problem(key)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("10.1.2.3:7777", False),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("localhost.example.com:1", False),
        ("[::ffff:10.0.0.1]:1", False),
    ],
)
def test_addresses_without_certificates(address, loopback):
    """Only this machine is dialled without certificates."""
    assert loopback is is_loopback(address)
    assert loopback is not bool(unprotected(address, None))
    assert "" == unprotected(address, PluginTls("a", "b", "c"))


def test_a_shared_folder(tmp_path):
    """A folder in which others may replace the socket is named, unless the sticky bit keeps them from it."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    assert f"others may replace what is in {folder} (mode 0777)" == shared_folder(str(folder / "p.sock"))

    folder.chmod(0o1777)
    assert "" == shared_folder(str(folder / "p.sock"))


def test_a_strangers_folder(tmp_path, monkeypatch):
    """A folder of another user, who could put another socket there, is refused."""
    path = tmp_path / "p.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(tmp_path)
        listener.bind("p.sock")
        listener.listen()
        path.chmod(0o600)
        monkeypatch.setattr(
            "berth.out_of_tree.transport.socket_access._trusted", lambda uid, _: uid != os.geteuid()
        )
        with pytest.raises(NotConnectedError, match=r"belongs to user .*, which is neither ours nor root"):
            check_socket("p", str(path))


def test_what_was_looked_at_is_dialled(tmp_path, monkeypatch):
    """A socket that takes the checked one's place is not the one that is dialled."""
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as ours, socket.socket(socket.AF_UNIX) as strangers:
        ours.bind("p.sock")
        ours.listen()
        (tmp_path / "p.sock").chmod(0o600)
        with held_socket("p", "p.sock") as held, socket.socket(socket.AF_UNIX) as client:
            (tmp_path / "p.sock").rename(tmp_path / "away")
            strangers.bind("p.sock")
            strangers.listen()
            client.connect(held)
            ours.setblocking(False)
            accepted, _ = ours.accept()
            accepted.close()


@reports("requeue-empty", log="`requeue message without an action`, with the plugin")
async def test_a_requeue_that_asks_for_nothing(caplog):
    """It moves no pod, and the log says whose it is."""
    log = PluginLog(logging.getLogger("berth"))
    stream = paced("p", _requeued(queueing_pb2.RequeueResponse()), TokenBucket(9, 9, Clock()), log)

    assert [] == [message async for message in stream]
    assert ["requeue message without an action plugin=p"] == caplog.messages
