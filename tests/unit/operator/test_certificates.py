"""Certificates that clients verify, renewed in time, under authorities that follow one another unnoticed."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest

from berth.operator.certificates import (
    AUTHORITY_LIFE,
    SERVING_LIFE,
    TRUSTED_BEFORE_SIGNING,
    Authorities,
    Pair,
    encoded,
)
from berth.serving.serving_certificate import context_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
NAMES = ("berth-main.berth-system.svc", "berth-main")
FIRST = Authorities().renewed(NOW)


def successor(then):
    """The authorities once another is due, as they are looked at again and again."""
    found = FIRST
    day = NOW
    while day < then:
        day += timedelta(days=7)
        found = Authorities.read(found.data(), day).renewed(day)
    return found


async def greeted(pair, bundle, name):
    """Say what a client that trusts the bundle makes of a server with that certificate."""
    server = await asyncio.start_server(
        lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context_of(*pair)
    )
    trust = ssl.create_default_context(cadata=bundle)
    trust.verify_flags |= ssl.VERIFY_X509_STRICT
    async with server:
        try:
            _, writer = await asyncio.open_connection(
                *server.sockets[0].getsockname(), ssl=trust, server_hostname=name
            )
        except ssl.SSLCertVerificationError as error:
            return error.verify_message
        writer.close()
        return ""


@pytest.mark.parametrize("name", [*NAMES, "localhost", "127.0.0.1", "::1"])
async def test_verifies(name):
    """A strict client that trusts the bundle takes the certificate for each of its names."""
    now = datetime.now(UTC)
    authorities = Authorities().renewed(now)
    pair = authorities.signer(now).issue(NAMES, now)

    assert "" == await greeted(pair, authorities.bundle(), name)


async def test_other_name():
    """For another scheduler's name it is refused."""
    now = datetime.now(UTC)
    authorities = Authorities().renewed(now)
    pair = authorities.signer(now).issue(NAMES, now)

    assert "Hostname mismatch" in await greeted(pair, authorities.bundle(), "berth-other")


def test_read_again():
    """What is stored is read back whole, and nothing is made anew."""
    again = Authorities.read(FIRST.data(), NOW)

    assert FIRST.bundle() == again.bundle()
    assert again is again.renewed(NOW)


@pytest.mark.parametrize(
    ("names", "later", "expected"),
    [
        pytest.param(NAMES, timedelta(0), True, id="new"),
        pytest.param(NAMES, SERVING_LIFE * 0.6, True, id="more than a third left"),
        pytest.param(NAMES, SERVING_LIFE * 0.7, False, id="less than a third left"),
        pytest.param(("berth-other",), timedelta(0), False, id="other names"),
    ],
)
def test_vouches(names, later, expected):
    """A certificate is kept while it is for these names and has a third of its life left."""
    signer = FIRST.signer(NOW)

    assert expected == signer.vouches(signer.issue(NAMES, NOW), names, NOW + later)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(Pair(b"", b""), id="nothing"),
        pytest.param(Pair(b"x", b"y"), id="no PEM"),
        pytest.param(
            Pair(FIRST.signer(NOW).issue(NAMES, NOW)[0], FIRST.signer(NOW).issue(NAMES, NOW)[1]),
            id="another's key",
        ),
        pytest.param(Authorities().renewed(NOW).signer(NOW).issue(NAMES, NOW), id="another authority's"),
    ],
)
def test_damaged(pair):
    """What is damaged, or of another authority, is issued anew."""
    assert not FIRST.signer(NOW).vouches(pair, NAMES, NOW)


@pytest.mark.parametrize(
    "data",
    [
        {"20261122000000.crt": "?", "20261122000000.key": "?"},
        {"20261122000000.crt": encoded(b"x")},
        {"x.crt": encoded(FIRST.signer(NOW).pair.certificate), "x.key": encoded(b"x")},
    ],
)
def test_damaged_authority(data):
    """An authority that cannot be read counts as none."""
    assert "" == Authorities.read(data, NOW).bundle()


def test_successor_is_trusted_first():
    """A successor is in the bundle for a day before it signs, and the old one stays until it ends."""
    due = NOW + AUTHORITY_LIFE * 0.7
    both = FIRST.renewed(due)
    old = FIRST.signer(NOW).pair.certificate.decode()

    assert both.bundle() != FIRST.bundle()
    assert old in both.bundle()
    assert FIRST.signer(NOW).pair == both.signer(due).pair
    assert FIRST.signer(NOW).pair != both.signer(due + TRUSTED_BEFORE_SIGNING).pair


def test_ended_authority_goes():
    """Years later the first authority is gone, and there are never more than two."""
    found = successor(NOW + 3 * AUTHORITY_LIFE)

    assert 2 >= found.bundle().count("BEGIN CERTIFICATE")
    assert FIRST.bundle() not in found.bundle()
