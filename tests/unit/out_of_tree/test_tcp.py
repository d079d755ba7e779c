"""Plugins over TCP: both sides show certificates, and no other client is served."""

import asyncio

import grpc
import pytest

from berth.config.duration import Duration
from berth.config.out_of_tree.plugin_list import PluginListError, parse_plugin_list
from berth.config.out_of_tree.sidecars import PluginTls, SidecarSpec
from berth.demo.surface import Surface
from berth.out_of_tree.errors import NotConnectedError
from berth.out_of_tree.lifecycle import attaching
from berth.out_of_tree.lifecycle.wanted import AttachError, DesiredPlugin
from berth.out_of_tree.transport.channels import open_channel
from berth_sdk.serving import Server
from tests.unit.extender.test_tls import self_signed
from tests.unit.out_of_tree.lifecycle.test_attaching import Colours, Harness
from tests.unit.out_of_tree.scripted import PROFILE


@pytest.fixture
def files(tmp_path):
    """Certificates and keys of both sides, and of a stranger, as files."""
    for name in ("host", "plugin", "stranger"):
        certificate, key = self_signed("localhost")
        (tmp_path / f"{name}.crt").write_bytes(certificate)
        (tmp_path / f"{name}.key").write_bytes(key)
    return tmp_path


async def attached(files, *, ca="plugin", shown="host"):
    """The nodes that fit once the plugin is attached over TLS."""
    port = Surface.free().port
    credentials = grpc.ssl_server_credentials(
        [((files / "plugin.key").read_bytes(), (files / "plugin.crt").read_bytes())],
        (files / "host.crt").read_bytes(),
        require_client_auth=True,
    )
    server = Server(Colours("v1"), f"localhost:{port}", credentials=credentials)
    await server.start()
    tls = PluginTls(*(str(files / name) for name in (f"{ca}.crt", f"{shown}.crt", f"{shown}.key")))
    spec = SidecarSpec("colours", f"localhost:{port}", Duration(10**9), args={"colour": "red"}, tls=tls)
    try:
        async with asyncio.TaskGroup() as tasks:
            harness = Harness(tasks)
            await harness.attaching.attach(DesiredPlugin(spec, (PROFILE,)))
            fitting = await harness.fitting()
            harness.host.versions["colours"].task.cancel()
            return fitting
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        await server.stop(grace_seconds=0)


async def test_both_sides_known(files):
    """With each other's certificates plugin and host work together."""
    assert ["n0"] == await attached(files)


@pytest.mark.parametrize("wrong", [{"ca": "stranger"}, {"shown": "stranger"}])
async def test_a_stranger(files, monkeypatch, wrong):
    """A side that shows another certificate than the one expected is not spoken to."""
    monkeypatch.setattr(attaching, "READY_SECONDS", 1.0)
    with pytest.raises(AttachError, match="not ready within 1 s"):
        await attached(files, **wrong)


async def test_no_certificates_on_a_network():
    """A channel that would be in plain text on a network is not opened."""
    with pytest.raises(NotConnectedError, match=r'"10\.1\.2\.3:7777" is reached over a network: give tls'):
        async with open_channel(SidecarSpec("far", "10.1.2.3:7777")):
            pass


async def test_files_that_are_not_there(files, monkeypatch):
    """A certificate that can't be read is named."""
    monkeypatch.setattr(attaching, "READY_SECONDS", 0.5)
    with pytest.raises(AttachError, match=r"missing\.crt: No such file"):
        await attached(files, ca="missing")


LIST = """
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins:
- {name: a, address: %s, tls: %s}
"""


def test_listed():
    """The list names the files."""
    (spec,) = parse_plugin_list(
        LIST % ("'h:1'", "{caFile: /ca, certFile: /crt, keyFile: /key, serverName: s}"), "list.yaml"
    )
    assert PluginTls("/ca", "/crt", "/key", "s") == spec.tls


@pytest.mark.parametrize(
    ("address", "tls", "says"),
    [
        ("'h:1'", "{caFile: /ca}", "plugins[0].tls: give certFile, keyFile: both sides show certificates"),
        (
            "'unix:/a'",
            "{caFile: /ca, certFile: /crt, keyFile: /key}",
            "plugins[0].tls: is for host:port; a unix socket is private by its mode",
        ),
        ("'h:1'", "{caFile: 5}", "plugins[0].tls: must hold texts"),
    ],
)
def test_listed_wrongly(address, tls, says):
    """A mistake names field and remedy."""
    with pytest.raises(PluginListError) as caught:
        parse_plugin_list(LIST % (address, tls), "list.yaml")

    assert f"list.yaml: {says}" == str(caught.value)
