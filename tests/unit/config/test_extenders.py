"""Building extenders: order, TLS material, and resources that they alone manage."""

import base64
import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from berth.config import BuildError, load
from tests.unit.config.files import args_file, file, names, profile_file


def certificate():
    """A self-signed certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    start = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return built.public_bytes(serialization.Encoding.PEM), private


CERTIFICATE, KEY = certificate()
OTHER_KEY = certificate()[1]
EMPTY_BLOCK = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
FILES = {"ca": CERTIFICATE, "cert": CERTIFICATE, "key": KEY, "junk": b"junk"}


def read(path):
    if path == "folder":
        raise IsADirectoryError(21, "Is a directory")
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory")
    return FILES[path]


def data(content):
    return base64.b64encode(content).decode()


def tls(**settings):
    return file({"extenders": [{"tlsConfig": settings}]})


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"caFile": "none"}, "open none: no such file or directory"),
        ({"caFile": "folder"}, "read folder: is a directory"),
        (
            {"caFile": "none", "insecure": True},
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        ({"caFile": "junk"}, "unable to load root certificates: unable to parse bytes as PEM block"),
        ({"caData": data(KEY)}, "unable to load root certificates: no valid certificate authority data seen"),
        (
            {"certData": data(b"junk"), "keyData": data(KEY)},
            "tls: failed to find any PEM data in certificate input",
        ),
        (
            {"certData": data(CERTIFICATE), "keyData": data(b"x")},
            "tls: failed to find any PEM data in key input",
        ),
        (
            {"certData": data(CERTIFICATE), "keyData": data(OTHER_KEY)},
            "tls: private key does not match public key",
        ),
        (
            {"certData": data(KEY), "keyData": data(KEY)},
            (
                "tls: failed to find certificate PEM data in certificate input,"
                " but did find a private key; PEM inputs may have been switched"
            ),
        ),
        (
            {"certData": data(CERTIFICATE), "keyData": data(CERTIFICATE)},
            "tls: found a certificate rather than a key in the PEM for the private key",
        ),
        (
            {"certData": data(CERTIFICATE), "keyData": data(CERTIFICATE + CERTIFICATE)},
            (
                'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input'
                " after skipping PEM blocks of the following types: [CERTIFICATE CERTIFICATE]"
            ),
        ),
        ({"serverName": "s", "certFile": "none"}, "open none: no such file or directory"),
    ],
)
def test_refused(settings, error):
    """Unreadable or contradicting TLS material is named."""
    with pytest.raises(BuildError) as raised:
        load(tls(**settings), read=read)

    assert f"couldn't build extenders: {error}" == str(raised.value)


def test_broken_certificate():
    """An authority that is PEM but no certificate is refused."""
    with pytest.raises(BuildError, match="unable to load root certificates: failed to parse certificate: "):
        load(tls(caData=data(EMPTY_BLOCK)), read=read)


@pytest.mark.parametrize(
    "settings",
    [
        {"caFile": "ca"},
        {"caData": data(EMPTY_BLOCK + CERTIFICATE)},
        {"caFile": "none", "caData": data(CERTIFICATE)},
        {"certFile": "cert", "keyFile": "key"},
        {"certData": data(CERTIFICATE), "keyData": data(KEY)},
        # A certificate without a key is ignored, a pair of files is read again at each connection.
        {"certFile": "none"},
        {"certData": data(b"junk")},
        {"certFile": "junk", "keyFile": "junk"},
    ],
)
def test_accepted(settings):
    """Good TLS material is loaded."""
    assert load(tls(**settings), read=read).extenders


def test_loaded():
    """Files become data, and data wins over files."""
    (extender,) = load(
        tls(caFile="ca", certFile="none", certData=data(CERTIFICATE), keyFile="key"), read=read
    ).extenders

    assert (CERTIFICATE, CERTIFICATE, KEY) == (
        extender.tls_config.ca_data,
        extender.tls_config.cert_data,
        extender.tls_config.key_data,
    )


def test_https_without_authority():
    """HTTPS without an authority trusts any server."""
    secure, plain = load(file("extenders: [{enableHTTPS: true}, {}]")).extenders

    assert secure.tls_config.insecure
    assert plain.tls_config is None


def test_order_and_timeout():
    """Ignorable extenders come last in stable order; an unset timeout is five seconds."""
    text = file(
        "extenders: [{urlPrefix: a, ignorable: true}, {urlPrefix: b, httpTimeout: 2s}, "
        "{urlPrefix: c, ignorable: true, httpTimeout: -1s}, {urlPrefix: d}]"
    )

    loaded = load(text)
    assert [("b", "2s"), ("d", "5s"), ("a", "5s"), ("c", "-1s")] == [
        (extender.url_prefix, str(extender.http_timeout)) for extender in loaded.extenders
    ]
    assert ["a", "b", "c", "d"] == [extender.url_prefix for extender in loaded.configuration.extenders]


MANAGING = "extenders: [{managedResources: [{name: a.io/b, ignoredByScheduler: true}, {name: a.io/c}]}]\n"


def test_ignored_resources():
    """What extenders alone manage replaces what the file says is ignored, in every profile."""
    text = args_file("NodeResourcesFit", {"ignoredResources": ["x.io/y"]}) + MANAGING

    (profile,) = load(text).profiles
    assert ("a.io/b",) == profile.args["NodeResourcesFit"].ignored_resources


def test_ignored_resources_without_fit():
    """A profile without arguments of NodeResourcesFit has no place for them."""
    off = {"multiPoint": {"disabled": names("NodeResourcesFit")}}

    with pytest.raises(
        BuildError, match="couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    ):
        load(profile_file(plugins=off) + MANAGING)
    assert load(profile_file(plugins=off, pluginConfig=[{"name": "NodeResourcesFit"}]) + MANAGING)


def test_binder_among_extenders():
    """An extender that binds does not replace the bind plugin."""
    text = profile_file(plugins={"bind": {"disabled": names("*")}}) + "extenders: [{bindVerb: b}]\n"

    with pytest.raises(BuildError, match="at least one bind plugin is needed"):
        load(text)
