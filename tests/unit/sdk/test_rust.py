"""The Rust SDK and the Rust plugins: their own tests, documentation and certificates."""

import asyncio
import re
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from berth.cli.main import main
from berth.demo.surface import Surface
from tests.rust_toolchain import (
    PACKAGES,
    ROOT,
    RUST_SDK,
    build,
    named_apart,
    needs_cargo,
    run_cargo,
    run_in,
    unformatted,
)

pytestmark = needs_cargo


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_package(package):
    """A package's own tests pass, those in its documentation among them; `make lint` has clippy's checks."""
    done = run_in(package, "test", "--quiet")

    assert 0 == done.returncode, done.stdout


def test_format():
    """The Rust files are as rustfmt writes them."""
    assert not unformatted()


def test_readme(tmp_path):
    """The plugin of the README is complete, and its test passes."""
    plugin, test = re.findall(
        r"```rust\n(.*?)```", (RUST_SDK / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.rs").write_text(f"{plugin}\n{test}")
    manifest = (RUST_SDK / "template/Cargo.toml").read_text().replace('path = ".."', f'path = "{RUST_SDK}"')
    (tmp_path / "Cargo.toml").write_text(manifest)
    named_apart(tmp_path, "readme-plugin")
    shutil.copy(RUST_SDK / "template/Cargo.lock", tmp_path)

    done = run_cargo("test", "--quiet", folder=tmp_path, capture=True)

    assert (0, True) == (done.returncode, "1 passed" in done.stdout), done.stdout


def signed(name, signer, key, *, authority=False):
    """A certificate of that key, by the signer's name and key, without a word on what it is for."""
    now = datetime.now(UTC)
    issuer, issuer_key = signer
    builder = x509.CertificateBuilder(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
        key.public_key(),
        x509.random_serial_number(),
        now - timedelta(hours=1),
        now + timedelta(hours=1),
    )
    constraints = x509.BasicConstraints(ca=authority, path_length=None)
    builder = builder.add_extension(constraints, critical=True)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    return builder.add_extension(names, critical=False).sign(issuer_key, hashes.SHA256())


def certificates(folder):
    """Certificates of both sides and a stranger's, each of an authority of its own, as files."""
    for name in ("host", "plugin", "stranger"):
        keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
        signer = f"authority of {name}", keys[0]
        made = {
            "ca": signed(signer[0], signer, keys[0], authority=True).public_bytes(Encoding.PEM),
            "crt": signed(name, signer, keys[1]).public_bytes(Encoding.PEM),
            "key": keys[1].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        }
        for ending, content in made.items():
            (folder / f"{name}.{ending}").write_bytes(content)


@pytest.mark.parametrize(("shown", "heard"), [("host", "1 passed"), ("stranger", "no plugin answers")])
async def test_tcp(tmp_path, shown, heard):
    """Over TCP a plugin shows its certificate, and speaks to hosts of the authority that it was given."""
    certificates(tmp_path)
    program = await asyncio.to_thread(build, "hello", tmp_path / "hello", folder=RUST_SDK / "template")
    address = f"localhost:{Surface.free().port}"
    files = {"certificate": "plugin.crt", "key": "plugin.key", "authority": "host.ca"}
    flags = (word for name, file in files.items() for word in (f"--tls-{name}", str(tmp_path / file)))
    process = await asyncio.create_subprocess_exec(
        program, "--address", address, *flags, stderr=asyncio.subprocess.PIPE
    )
    mine = {"ca": "plugin.ca", "cert": f"{shown}.crt", "key": f"{shown}.key"}
    tls = (word for name, file in mine.items() for word in (f"--{name}", str(tmp_path / file)))
    asked = ("plugin", "verify", address, *tls, "--only", "handshake/name", "--timeout", "2")
    try:
        assert b"serving" in await process.stderr.readline()
        outcome = await asyncio.to_thread(CliRunner().invoke, main, asked)
    finally:
        process.terminate()
        await process.communicate()

    assert heard in outcome.output
