"""From a kubeconfig, flags or a pod's service account to an Endpoint.

Loading, exec plugins, OIDC and token renewal are the `kubernetes` package's; it is imported when
first needed, because that takes more than a second. This is the rare path: once at the start, and
when a token grows old or is refused.

Called by: the entry floor, which turns ConfigurationError into exit code 2.
"""

import asyncio
import logging
import os
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # not in the stubs

from berth.client.endpoint import Address, Endpoint, endpoint_of, parse_url
from berth.client.errors import ConfigurationError
from berth.client.kubeconfig import Chosen, choose
from berth.client.timing import Clock, SystemClock

log = logging.getLogger(__name__)

ASK_EVERY_SECONDS = 30.0
REJECTED_EVERY_SECONDS = 10.0
BEARER = "BearerToken"


class Loaded(NamedTuple):
    """What the `kubernetes` package made of the credentials, and the fields to name in errors."""

    configuration: Any
    file: str
    server_field: str
    ca_field: str
    certificate_field: str
    proxy_url: str
    reread: bool


class LoadedAuthorization:
    """The bearer token of a configuration, asked for anew every half minute and when refused.

    Asking is cheap unless the token is about to expire: then the exec plugin runs, or the file is
    read again. It happens in a thread, once for all requests that wait for it.
    A client certificate that comes with the token is shown by the connections opened from then on.
    """

    def __init__(self, load: Callable[[], Loaded], loaded: Loaded, clock: Clock) -> None:
        self._load = load
        self._loaded = loaded
        self._clock = clock
        self._lock = asyncio.Lock()
        self._rejected = float("-inf")
        self._value = _header(loaded)
        self._asked = clock.monotonic()
        self.ssl_context: ssl.SSLContext | None = None

    def current(self) -> str | None:
        """The header's value, or None when it is time to ask again."""
        return self._value if self._clock.monotonic() - self._asked < ASK_EVERY_SECONDS else None

    async def refresh(self, *, rejected: bool = False) -> str:
        """The header's value asked for anew; a refused one at most every ten seconds.

        Raises: ConfigurationError.
        """
        async with self._lock:
            now = self._clock.monotonic()
            if rejected and now - self._rejected >= REJECTED_EVERY_SECONDS:
                self._rejected = now
                await asyncio.to_thread(self._reload)
            elif self.current() is None:
                await asyncio.to_thread(self._reload if self._loaded.reread else self._renew)
            return self._value

    def _renew(self) -> None:
        self._asked = self._clock.monotonic()
        try:
            self._value = _header(self._loaded)
        except ConfigurationError as error:
            # The package renews five minutes early, so the old token may do until the next try.
            log.warning("token not renewed, the old one stays: error=%s", error)

    def _reload(self) -> None:
        loaded = self._load()
        if self.ssl_context is not None:
            _show_certificate(self.ssl_context, loaded)
        self._value, self._loaded = _header(loaded), loaded
        self._asked = self._clock.monotonic()


def load_endpoint(
    *,
    kubeconfig: str = "",
    master: str = "",
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
) -> Endpoint:
    """Find the API server and our credentials; may run an exec plugin, so it can take a while.

    The kubeconfig given, else $KUBECONFIG, else (with no `master`) the pod's service account.
    `master` replaces the server's address, and stands alone where there is no kubeconfig.
    Raises: ConfigurationError.
    """
    paths = kubeconfig or environ.get("KUBECONFIG", "")
    master = master or ("" if paths else environ.get("KUBERNETES_MASTER", ""))
    if master and not paths:
        return endpoint_of(master)
    if not paths and not environ.get("KUBERNETES_SERVICE_HOST"):
        raise ConfigurationError(
            "",
            "",
            "invalid configuration: no configuration has been provided",
            "pass --kubeconfig or --master, set KUBECONFIG or KUBERNETES_MASTER, or run in a cluster",
        )

    def load() -> Loaded:
        return _from_kubeconfig(choose(paths, context)) if paths else _from_service_account()

    return _endpoint(load, master, clock or SystemClock())


def _endpoint(load: Callable[[], Loaded], master: str, clock: Clock) -> Endpoint:
    loaded = load()
    server = master or loaded.configuration.host
    field = "--master" if master else loaded.server_field
    address, prefix = parse_url(server, file="" if master else loaded.file, field_name=field)
    authorization = LoadedAuthorization(load, loaded, clock)
    context = _ssl_context(loaded) if address.scheme == "https" else None
    authorization.ssl_context = context
    proxy, proxy_authorization = _proxy(loaded, address)
    return Endpoint(
        address,
        prefix,
        context,
        loaded.configuration.tls_server_name,
        proxy,
        proxy_authorization,
        authorization,
    )


def _from_kubeconfig(chosen: Chosen) -> Loaded:
    package = import_module("kubernetes.config.kube_config")
    cluster, user = f"clusters[{chosen.cluster.name}].cluster", ""
    configuration = package.Configuration()
    if chosen.user is not None:
        user = f"users[{chosen.user.name}].user"
        _refuse_impersonation(chosen)
    try:
        with _overheard() as complaints:
            merged = package.KubeConfigMerger(chosen.paths).config
            loader = package.KubeConfigLoader(
                merged, active_context=chosen.context.name, config_base_path=None
            )
            loader.load_and_set(configuration)
    except Exception as error:
        # Beside its own errors the package lets through whatever an odd file makes it stumble over.
        where = user or cluster
        raise ConfigurationError(
            chosen.context.file, where, str(error), "check the files and data it names"
        ) from error
    settings = chosen.user.value if chosen.user is not None else {}
    _expect_credentials(chosen, settings, configuration, complaints)
    return Loaded(
        configuration,
        chosen.cluster.file,
        f"{cluster}.server",
        f"{cluster}.certificate-authority",
        f"{user}.client-certificate",
        str(chosen.cluster.value.get("proxy-url") or ""),
        reread="tokenFile" in settings,
    )


def _from_service_account() -> Loaded:
    package = import_module("kubernetes.config.incluster_config")
    configuration = package.Configuration()
    # Where containers have no mount namespace, this variable says what mount paths stand behind.
    root = os.environ.get("CONTAINER_SANDBOX_MOUNT_POINT", "").rstrip("/")
    token, certificate = root + package.SERVICE_TOKEN_FILENAME, root + package.SERVICE_CERT_FILENAME
    try:
        package.InClusterConfigLoader(token, certificate).load_and_set(configuration)
    except (package.ConfigException, OSError) as error:
        raise ConfigurationError(
            token, "", str(error), "let the pod mount its service account, or pass --kubeconfig"
        ) from error
    return Loaded(configuration, certificate, "KUBERNETES_SERVICE_HOST", "", "", "", reread=False)


def _refuse_impersonation(chosen: Chosen) -> None:
    """Acting as somebody else than the file says would be worse than not acting."""
    user = chosen.user
    if user is not None and user.value.get("as"):
        field = f"users[{user.name}].user.as"
        raise ConfigurationError(
            user.file, field, "impersonation is not supported", "use that user's credentials"
        )


def _expect_credentials(
    chosen: Chosen, settings: Mapping[str, Any], configuration: Any, complaints: list[str]
) -> None:
    """The package logs that a plugin failed and goes on as anonymous; we say so and stop."""
    if chosen.user is None or configuration.api_key.get(BEARER) or configuration.cert_file:
        return
    for kind in ("exec", "auth-provider"):
        if kind in settings:
            field = f"users[{chosen.user.name}].user.{kind}"
            problem = "; ".join(complaints) or "it gave neither a token nor a certificate"
            raise ConfigurationError(chosen.user.file, field, problem, "run it by hand to see why")


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """Collect what is logged meanwhile: the package reports a failing plugin in no other way."""
    messages: list[str] = []
    this_thread = threading.get_ident()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == this_thread:
                messages.append(record.getMessage())

    listener = Listener(logging.ERROR)
    logging.getLogger().addHandler(listener)
    try:
        yield messages
    finally:
        logging.getLogger().removeHandler(listener)


def _header(loaded: Loaded) -> str:
    try:
        with _overheard() as complaints:
            value = loaded.configuration.get_api_key_with_prefix(BEARER)
    except Exception as error:
        # Plugins, OIDC and token files fail in ways of their own; all mean that there is no token.
        raise ConfigurationError(
            loaded.file, "users", f"no token: {error}", "renew the credentials"
        ) from error
    if complaints:
        raise ConfigurationError(
            loaded.file, "users", f"no token: {'; '.join(complaints)}", "renew the credentials"
        )
    header = str(value or "").strip()
    if "\n" in header or "\r" in header:
        raise ConfigurationError(loaded.file, "users", "the token has a line break in it", "remove it")
    return header


def _ssl_context(loaded: Loaded) -> ssl.SSLContext:
    configuration = loaded.configuration
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    except OSError as error:
        raise ConfigurationError(
            loaded.file, loaded.ca_field, f"no usable certificates: {error}", "give a PEM file"
        ) from error
    # Many clusters' own authorities lack extensions that Python 3.13 began to insist on.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _show_certificate(context, loaded)
    return context


def _show_certificate(context: ssl.SSLContext, loaded: Loaded) -> None:
    configuration = loaded.configuration
    if not configuration.cert_file:
        return
    try:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        raise ConfigurationError(
            loaded.file, loaded.certificate_field, f"no usable key pair: {error}", "give PEM files"
        ) from error


def _proxy(loaded: Loaded, address: Address) -> tuple[Address | None, str]:
    """The proxy on the way to the address, and its Proxy-Authorization header."""
    url = loaded.proxy_url
    if not url:
        url, exceptions = loaded.configuration.proxy, loaded.configuration.no_proxy
        if not url or proxy_bypass_environment(address.host, {"no": exceptions or ""}):
            return None, ""
    proxy, _ = parse_url(url, file=loaded.file, field_name="proxy-url")
    if proxy.scheme != "http":
        raise ConfigurationError(
            loaded.file, "proxy-url", f"{proxy.scheme} proxies are not supported", "use an http:// proxy"
        )
    parts = urlsplit(url)
    if not parts.username:
        return proxy, ""
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return proxy, f"Basic {b64encode(login.encode()).decode('ascii')}"
