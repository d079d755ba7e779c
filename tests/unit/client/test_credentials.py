"""Kubeconfigs and service accounts become endpoints, or one clear line that says what to change."""

import base64
import json
import ssl
import stat
import sys
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import ConfigurationError
from tests.failures.reporting import reports
from tests.unit.client.certificates import identity
from tests.unit.client.conftest import answer, raw_server, read_request, transport_to, tunnel


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def kubeconfig(tmp_path, *, server="https://10.0.0.1:6443", cluster=None, user=None, name="config", **top):
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **top,
    }
    path = tmp_path / name
    path.write_text(yaml.safe_dump(document))
    return str(path)


def load(path="", **options):
    return load_endpoint(kubeconfig=path, environ=options.pop("environ", {}), **options)


def test_token(tmp_path):
    """Server, path prefix and bearer token come from the file."""
    path = kubeconfig(tmp_path, server="https://host/k8s/one/", user={"token": "secret"})
    endpoint = load(path)

    assert (endpoint.address.host, endpoint.address.port, endpoint.prefix) == ("host", 443, "/k8s/one")
    assert endpoint.authorization.current() == "Bearer secret"
    assert endpoint.ssl_context.verify_mode == ssl.CERT_REQUIRED


def test_master_beats_the_file(tmp_path):
    """--master replaces the address and keeps the credentials."""
    endpoint = load(kubeconfig(tmp_path, user={"token": "secret"}), master="http://127.0.0.1:8080")

    assert endpoint.address.authority == "127.0.0.1:8080"
    assert endpoint.ssl_context is None
    assert endpoint.authorization.current() == "Bearer secret"


def test_master_alone():
    """--master alone needs no file."""
    assert load(master="127.0.0.1:8080").address.authority == "127.0.0.1:8080"


def test_environment(tmp_path):
    """KUBECONFIG may name several files, not all of which have to exist; earlier ones win."""
    first = kubeconfig(tmp_path, name="one", user={"token": "first"}, **{"current-context": ""})
    second = kubeconfig(tmp_path, name="two", user={"token": "second"})
    joined = f"{tmp_path}/none:{first}:{second}"

    assert load(environ={"KUBECONFIG": joined}).authorization.current() == "Bearer first"


def test_other_context(tmp_path):
    """A context can be chosen by name."""
    contexts = [
        {"name": "here", "context": {"cluster": "absent"}},
        {"name": "there", "context": {"cluster": "c"}},
    ]

    assert load(kubeconfig(tmp_path, contexts=contexts), context="there").address.host == "10.0.0.1"


def test_tls_settings(tmp_path):
    """tls-server-name, insecure-skip-tls-verify and proxy-url are honoured."""
    settings = {
        "tls-server-name": "api.example",
        "insecure-skip-tls-verify": True,
        "proxy-url": "http://me:p%40ss@proxy:3128",
    }
    endpoint = load(kubeconfig(tmp_path, cluster=settings))

    assert endpoint.server_name == "api.example"
    assert endpoint.ssl_context.verify_mode == ssl.CERT_NONE
    assert endpoint.proxy.authority == "proxy:3128"
    assert base64.b64decode(endpoint.proxy_authorization.removeprefix("Basic ")) == b"me:p@ss"


def test_proxy_from_the_environment(tmp_path, monkeypatch):
    """HTTPS_PROXY is used, except for the hosts in NO_PROXY."""
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", "10.0.0.1")

    assert load(kubeconfig(tmp_path)).proxy is None
    assert load(kubeconfig(tmp_path, server="https://10.0.0.2")).proxy.port == 3128


def plugin(tmp_path, body):
    path = tmp_path / "plugin"
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path)}}


COUNTING = """
import json, pathlib
count = pathlib.Path(__file__).with_name("count")
n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n))
status = {{"token": f"token-{{n}}", "expirationTimestamp": "{expires}"}}
version = "client.authentication.k8s.io/v1"
print(json.dumps({{"apiVersion": version, "kind": "ExecCredential", "status": status}}))
"""


async def test_plugin_renews(tmp_path, clock):
    """An exec plugin gives the token, and is run again when that is about to expire."""
    soon = (datetime.now(UTC) + timedelta(minutes=4)).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = plugin(tmp_path, COUNTING.format(expires=soon))
    authorization = load(kubeconfig(tmp_path, user=user), clock=clock).authorization
    first = authorization.current()
    await clock.sleep(31)

    assert authorization.current() is None
    assert await authorization.refresh() != first


async def test_plugin_is_asked_when_refused(tmp_path, clock):
    """A 401 makes the plugin run again, and the request is sent once more with what it gives."""
    seen = []

    async def serve(reader, writer):
        while True:
            head, _ = await read_request(reader)
            token = next(line for line in head.split(b"\r\n") if line.startswith(b"Authorization"))
            seen.append(token.split()[-1])
            writer.write(answer(201 if len(set(seen)) > 1 else 401))

    user = plugin(tmp_path, COUNTING.format(expires="2099-01-01T00:00:00Z"))
    async with raw_server(serve) as server:
        endpoint = load(kubeconfig(tmp_path, server=server.url, user=user), clock=clock)
        async with transport_to(endpoint) as transport:
            response = await transport.request("POST", "/")

    assert response.status == 201
    assert len(seen) == 2


@reports("token-not-renewed", log="`token not renewed, the old one stays`, with file and cause")
async def test_token_file_is_read_again(tmp_path, clock, caplog):
    """A token file that changes is followed; where it is gone the last token stays, and the log says so."""
    token = tmp_path / "token"
    token.write_text("one\n")
    path = kubeconfig(tmp_path, user={"tokenFile": str(token)})
    authorization = load(path, clock=clock).authorization
    before = authorization.current()
    token.write_text("two\n")
    await clock.sleep(31)

    assert before == "Bearer one"
    assert await authorization.refresh() == "Bearer two"
    token.unlink()
    await clock.sleep(31)
    assert await authorization.refresh() == "Bearer two"
    assert "token not renewed, the old one stays" in caplog.text
    assert str(token) in caplog.text


BROKEN = [
    pytest.param({"current-context": "x"}, "current-context", "there is no context 'x'", id="context"),
    pytest.param({"current-context": ""}, "current-context", "no context is chosen", id="no context"),
    pytest.param({"users": []}, "contexts[here].context.user", "there is no user 'u'", id="user"),
    pytest.param({"clusters": []}, "contexts[here].context.cluster", "there is no cluster 'c'", id="cluster"),
    pytest.param({"clusters": {"a": 1}}, "clusters", "is not a list", id="clusters not a list"),
    pytest.param({"users": [{"user": {}}]}, "users[0].name", "is missing", id="nameless user"),
    pytest.param({"server": ""}, "clusters[c].cluster.server", "is missing", id="no server"),
    pytest.param(
        {"server": "ftp://x"}, "clusters[c].cluster.server", "not a server address", id="bad server"
    ),
    pytest.param({"server": "https://h:port"}, "clusters[c].cluster.server", "not a server", id="bad port"),
    pytest.param(
        {"cluster": {"certificate-authority": "/absent.pem"}},
        "clusters[c].cluster.certificate-authority",
        "/absent.pem",
        id="no CA file",
    ),
    pytest.param(
        {"cluster": {"certificate-authority-data": "bm90IGEgUEVN"}},
        "clusters[c].cluster.certificate-authority",
        "no usable certificates",
        id="CA is no PEM",
    ),
    pytest.param({"user": {"as": "root"}}, "users[u].user.as", "not supported", id="impersonation"),
    pytest.param(
        {"cluster": {"proxy-url": "socks5://p:1"}}, "proxy-url", "not a server address", id="socks proxy"
    ),
    pytest.param(
        {"user": {"exec": {"apiVersion": "v1", "command": "/absent/plugin"}}},
        "users[u].user.exec",
        "/absent/plugin",
        id="plugin does not exist",
    ),
]


@pytest.mark.parametrize(("broken", "field", "problem"), BROKEN)
def test_unusable(tmp_path, broken, field, problem):
    """What is wrong is named with file, field and remedy."""
    path = kubeconfig(tmp_path, **broken)
    with pytest.raises(ConfigurationError) as caught:
        load(path)

    assert caught.value.file == path
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: [", "line 1: not valid YAML", id="broken YAML"),
        pytest.param("- a", "is not a kubeconfig", id="a list"),
        pytest.param("", "is not a kubeconfig", id="empty"),
    ],
)
def test_malformed(tmp_path, text, problem):
    """A file that is no kubeconfig is distinguished from one that is wrong."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=problem):
        load(str(path))


JUNK = [None, 1, [], "", "x", {"a": 1}]


def places(document, path=()):
    """Every place in a document, as the path of keys to it."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in entries:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def complaint_about(path):
    """What loading that kubeconfig is refused with; nothing where it is taken."""
    try:
        load(path)
    except ConfigurationError as error:
        return str(error)
    return ""


def test_junk_anywhere(tmp_path):
    """Whatever stands wherever in a kubeconfig, it is loaded or refused with one clear line."""
    data = b64(identity("x")[0])
    path = kubeconfig(
        tmp_path,
        cluster={"certificate-authority-data": data, "tls-server-name": "n", "proxy-url": "http://p:1"},
        user={"token": "t"},
    )
    text = (tmp_path / "config").read_text()
    for place in places(yaml.safe_load(text)):
        for junk in JUNK:
            document = yaml.safe_load(text)
            inner = document
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = junk
            (tmp_path / "config").write_text(yaml.safe_dump(document))
            assert "\n" not in complaint_about(path), (place, junk)


def test_passwords_stay_out_of_messages(tmp_path):
    """A proxy's password is not repeated in the message about its URL."""
    with pytest.raises(ConfigurationError) as caught:
        load(kubeconfig(tmp_path, cluster={"proxy-url": "https://me:secret@proxy:port"}))

    assert "secret" not in str(caught.value)


def test_missing(tmp_path):
    """A kubeconfig that does not exist is one clear line."""
    with pytest.raises(ConfigurationError) as caught:
        load(f"{tmp_path}/absent")

    assert str(caught.value) == (
        f"{tmp_path}/absent: the kubeconfig does not exist; check the path, or leave it out"
    )


def test_nothing_given():
    """Without flag, environment or service account there is nothing to connect to."""
    with pytest.raises(ConfigurationError, match="no configuration has been provided"):
        load()


async def test_service_account(tmp_path, monkeypatch, clock):
    """In a pod the mounted token is used, and read again as it is rotated."""
    authority = tmp_path / "ca.crt"
    authority.write_bytes(identity("ca")[0])
    token = tmp_path / "token"
    token.write_text("mounted\n")
    monkeypatch.setattr("berth.client.authentication.service_account.FOLDER", str(tmp_path))
    environ = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    endpoint = load(environ=environ, clock=clock)
    before = endpoint.authorization.current()
    token.write_text("rotated")

    assert endpoint.address.host == "10.96.0.1"
    assert before == "Bearer mounted"
    assert await endpoint.authorization.refresh(rejected=True) == "Bearer rotated"


@pytest.mark.parametrize("through_proxy", [False, True])
async def test_mutual_tls(tmp_path, through_proxy):
    """Client certificate, CA data and server name work, directly and through a proxy's tunnel."""
    authority, _, issuer = identity("authority")
    certificate, key, _ = identity("api.example", issuer=issuer)
    mine, my_key, _ = identity("someone", issuer=issuer)
    (tmp_path / "server.pem").write_bytes(certificate + key)
    (tmp_path / "ca.pem").write_bytes(authority)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca.pem"))
    tls.verify_mode = ssl.CERT_REQUIRED
    # As Go's servers, which don't insist on the extensions that Python 3.13 asks for.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    tls.load_cert_chain(str(tmp_path / "server.pem"))

    async def serve(reader, writer):
        await read_request(reader)
        writer.write(answer(200, json.dumps(writer.get_extra_info("peercert")["subject"]).encode()))
        await reader.read()

    async with raw_server(serve, tls=tls) as server, tunnel() as proxy:
        cluster = {"certificate-authority-data": b64(authority), "tls-server-name": "api.example"}
        if through_proxy:
            cluster["proxy-url"] = proxy.url
        user = {"client-certificate-data": b64(mine), "client-key-data": b64(my_key)}
        endpoint = load(kubeconfig(tmp_path, server=server.url, cluster=cluster, user=user))
        async with transport_to(endpoint) as transport:
            response = await transport.request("GET", "/")

        assert b"someone" in response.body
        assert proxy.connections == int(through_proxy)


def b64(data):
    return base64.b64encode(data).decode()
