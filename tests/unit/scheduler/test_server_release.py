"""The release that is followed: the API server's, unless the command line names one."""

import asyncio
import logging

import pytest

from berth.client.connections.connection import Response
from berth.client.errors import NotSentError
from berth.config.command_line import parse_flags, read_settings
from berth.config.errors import FeatureGateError
from berth.config.releases.release import followed
from berth.sandbox import SandboxOptions, serve
from berth.scheduler.server_release import server_version, settings_for_server
from tests.failures.reporting import reports


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("v1.33.4", (1, 36)),
        ("v1.36.2+k3s1", (1, 36)),
        ("v1.37.0-rc.0", (1, 37)),
        ("v1.38.1", (1, 38)),
        ("v1.41.0", (1, 38)),
        ("dev", None),
        ("", None),
    ],
)
def test_the_release_beside_a_server(version, release):
    """It is the server's own, or the nearest one that is followed."""
    assert release == followed(version)


class Later:
    """A server that answers only after it was not reached a few times."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def request(self, method, path, *, timeout_seconds):
        assert ("GET", "/version", True) == (method, path, timeout_seconds > 0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@reports("version-untried", log="`API server is not tested`, with what to do")
async def test_an_untried_server_is_warned_of(tmp_path, caplog, monkeypatch):
    """The start says that nothing newer was tried; it goes on."""
    monkeypatch.setattr("berth.config.releases.tried.NEWEST", (1, 35))
    with caplog.at_level(logging.WARNING):
        await started(tmp_path)

    assert "API server is not tested version=v1.36.0" in caplog.text
    assert "Kubernetes 1.36 is newer than 1.35, the newest that this version" in caplog.text


@reports(
    "server-away", log="`waiting for the API server, whose version is to be known first`, once for a cause"
)
async def test_the_server_is_waited_for(monkeypatch, caplog):
    """Nothing is decided before the release is known; the log says once what is waited for."""
    monkeypatch.setattr("berth.scheduler.server_release.PAUSE_SECONDS", 0.0)
    refused = NotSentError("connection refused")
    server = Later(refused, refused, Response(200, b'{"gitVersion": "v1.37.1"}'))

    assert "v1.37.1" == await server_version(server, asyncio.Event())
    said = "waiting for the API server, whose version is to be known first err=connection refused"
    assert [said] == caplog.messages


async def test_waiting_ends_with_the_process():
    """A signal is not kept waiting."""
    stop = asyncio.Event()
    stop.set()

    assert "" == await server_version(Later(), stop)


@pytest.mark.parametrize("answer", [Response(403, b"{}"), Response(200, b"<html>")])
async def test_a_server_that_does_not_say(answer):
    """It has no version then."""
    assert "" == await server_version(Later(answer), asyncio.Event())


async def started(tmp_path, *flags):
    """The options and settings of a command line beside a sandbox."""
    kubeconfig = tmp_path / "kubeconfig"
    async with await serve(SandboxOptions()) as sandbox:
        sandbox.write_kubeconfig(kubeconfig)
        options = parse_flags([f"--kubeconfig={kubeconfig}", *flags])
        return await settings_for_server(options, read_settings(options), asyncio.Event())


async def test_the_start_says_which_release_is_followed(tmp_path, caplog):
    """The log has the server's version, and the release that decisions go by."""
    with caplog.at_level(logging.INFO):
        options, _ = await started(tmp_path)

    assert (1, 36) == options.gates.version.binary
    assert "found API server version=v1.36.0" in caplog.text
    assert "decides as kube-scheduler release=1.36 emulated=1.36 preview=False" in caplog.messages


async def test_the_command_line_names_the_release(tmp_path, caplog):
    """The server is not asked then; a preview is called so."""
    with caplog.at_level(logging.INFO):
        options, settings = await started(tmp_path, "--release=1.38", "--emulated-version=1.37")

    assert ((1, 38), (1, 38)) == (options.gates.version.binary, settings.loaded.gates.rules.release)
    said = "decides as kube-scheduler release=1.38 emulated=1.37 preview=True"
    assert [said] == caplog.messages


async def test_gates_of_another_release(tmp_path):
    """They are refused in the words of the server's release."""
    with pytest.raises(FeatureGateError, match="unrecognized feature gate: CompositePodGroup"):
        await started(
            tmp_path,
            "--feature-gates=CompositePodGroup=true,GenericWorkload=true"
            ",TopologyAwareWorkloadScheduling=true",
        )


@reports("version-unknown", log="`API server does not say its version`, with the release that is taken")
async def test_a_server_without_a_version(tmp_path, monkeypatch, caplog):
    """The release that is taken then is logged, with the flag that names another."""

    async def unknown(*_):
        return ""

    monkeypatch.setattr("berth.scheduler.server_release.server_version", unknown)
    options, _ = await started(tmp_path)

    said = "API server does not say its version, another release is named by --release release=1.36"
    assert (1, 36) == options.gates.version.binary
    assert said in caplog.messages
