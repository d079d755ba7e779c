"""A certificate in files serves as its files are now."""

import asyncio
import socket
import ssl

import pytest

from berth.cli.asking.secure_port import Server
from berth.serving.access import allow_all
from berth.serving.endpoints import SecureServer
from berth.serving.self_signed import self_signed
from berth.serving.serving_certificate import NamedCertificate
from tests.failures.reporting import reports
from tests.unit.serving.test_endpoints import make_endpoints


@pytest.fixture
def files(tmp_path):
    """Where a certificate and its key are."""
    found = tmp_path / "tls.crt", tmp_path / "tls.key"
    replace(found, *self_signed())
    return found


def replace(files, *contents):
    """Write files as a kubelet does: a new file takes the place of the old one."""
    for file, content in zip(files, contents, strict=True):
        new = file.with_suffix(".new")
        new.write_bytes(content)
        new.replace(file)


async def shown(port):
    """Give the certificate that a new connection is shown, in PEM."""
    found = await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))
    return found.encode()


async def test_renewed(files):
    """A running server shows new connections the renewed certificate."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = await SecureServer.start(listener, NamedCertificate(*map(str, files)), make_endpoints())
    try:
        before, (certificate, key) = await shown(server.port), self_signed()
        replace(files, certificate, key)

        assert before != certificate
        assert certificate == await shown(server.port)
    finally:
        await server.close()


def test_not_read_again(files):
    """While its files stay as they are, nothing is read."""
    certificate = NamedCertificate(*map(str, files))

    assert certificate() is certificate()


def test_half_renewed(files):
    """A certificate without its key is not used until the key has come, and what was used before stays."""
    certificate, (new, key) = NamedCertificate(*map(str, files)), self_signed()
    first = certificate()
    replace(files[:1], new)
    between = certificate()
    replace(files[1:], key)

    assert first is between
    assert first is not certificate()


@reports(
    "certificate-not-renewed", log="`serving certificate not renewed, the last one stays`, with the cause"
)
def test_files_gone(files, caplog):
    """Files that are taken away leave the certificate in use, and the log says so."""
    certificate = NamedCertificate(*map(str, files))
    first = certificate()
    files[0].unlink()

    assert first is certificate()
    assert "serving certificate not renewed, the last one stays" in caplog.text
    assert str(files[0]) in caplog.text
    assert "No such file or directory" in caplog.text


async def test_asked(files):
    """`berth` verifies the certificate with the file that it is given, and refuses it without one."""
    listener = socket.create_server(("127.0.0.1", 0))
    certificate = NamedCertificate(*map(str, files))
    server = await SecureServer.start(listener, certificate, make_endpoints(), review=allow_all)
    url = f"https://localhost:{server.port}"
    try:
        answer = await asyncio.to_thread(Server(url, authority=str(files[0])).ask, "/configz")
        with pytest.raises(SystemExit):
            await asyncio.to_thread(Server(url).ask, "/configz")
    finally:
        await server.close()

    assert "componentconfig" in answer
