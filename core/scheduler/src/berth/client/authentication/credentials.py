"""From a kubeconfig, flags or a pod's service account to an Endpoint.

This is the rare path: once at the start, and when a token grows old or is refused.

Called by: the entry floor, which turns ConfigurationError into exit code 2.
"""

import asyncio
import logging
import os
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit
from urllib.request import (  # type: ignore[attr-defined]  # the second is not in the stubs
    getproxies_environment,
    proxy_bypass_environment,
)

from berth.client.authentication.kubeconfig import KubeconfigContext, choose
from berth.client.authentication.kubeconfig_credentials import from_kubeconfig
from berth.client.authentication.loaded_credentials import LoadedCredentials, Pem
from berth.client.authentication.plugin_credentials import given_by_plugin, with_plugin
from berth.client.authentication.service_account import from_service_account
from berth.client.endpoint import Address, Endpoint, endpoint_of, parse_url
from berth.client.errors import ConfigurationError
from berth.framework.clock import Clock, SystemClock

log = logging.getLogger(__name__)

ASK_EVERY_SECONDS = 30.0
REJECTED_EVERY_SECONDS = 10.0


class LoadedAuthorization:
    """The bearer token of a configuration, asked for anew every half minute and when refused.

    Asking is cheap unless the token is about to expire: then the exec plugin runs, or the file is
    read again. It happens in a thread, once for all requests that wait for it.
    A client certificate that comes with the token is shown by the connections opened from then on.
    """

    def __init__(
        self, load: Callable[[], LoadedCredentials], loaded: LoadedCredentials, clock: Clock
    ) -> None:
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
                await asyncio.to_thread(self._renew)
            return self._value

    def _renew(self) -> None:
        self._asked = self._clock.monotonic()
        try:
            self._value = _header(self._loaded)
        except ConfigurationError as error:
            # Plugins' tokens are renewed five minutes early, and files are replaced: the old one may do.
            log.warning("token not renewed, the old one stays err=%s", error)

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

    def load() -> LoadedCredentials:
        return _chosen(choose(paths, context)) if paths else from_service_account(environ)

    return _endpoint(load, master, clock or SystemClock())


def _endpoint(load: Callable[[], LoadedCredentials], master: str, clock: Clock) -> Endpoint:
    loaded = load()
    server = master or loaded.server
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
        loaded.server_name or None,
        proxy,
        proxy_authorization,
        authorization,
    )


def _chosen(chosen: KubeconfigContext) -> LoadedCredentials:
    _refuse_impersonation(chosen)
    loaded, kind = from_kubeconfig(chosen), given_by_plugin(chosen.user)
    if chosen.user is None or not kind:
        return loaded
    return with_plugin(loaded, chosen, chosen.user, kind)


def _refuse_impersonation(chosen: KubeconfigContext) -> None:
    """Acting as another user than the file says would be worse than not acting."""
    user = chosen.user
    if user is not None and user.value.get("as"):
        field = f"users[{user.name}].user.as"
        raise ConfigurationError(
            user.file, field, "impersonation is not supported", "use that user's credentials"
        )


def _header(loaded: LoadedCredentials) -> str:
    header = loaded.header()
    if "\n" in header or "\r" in header:
        raise ConfigurationError(loaded.file, "users", "the token has a line break in it", "remove it")
    return header


def _ssl_context(loaded: LoadedCredentials) -> ssl.SSLContext:
    authority = loaded.authority
    try:
        context = ssl.create_default_context(cafile=authority.path or None, cadata=authority.text or None)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            loaded.file, loaded.authority_field, f"no usable certificates: {error}", "give a PEM file"
        ) from error
    # Many clusters' own authorities lack extensions that Python 3.13 began to insist on.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if not loaded.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _show_certificate(context, loaded)
    return context


def _show_certificate(context: ssl.SSLContext, loaded: LoadedCredentials) -> None:
    if not any(loaded.certificate):
        return
    try:
        with _file_of(loaded.certificate) as certificate, _file_of(loaded.key) as key:
            context.load_cert_chain(certificate, key or None)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            loaded.file, loaded.certificate_field, f"no usable key pair: {error}", "give PEM files"
        ) from error


@contextmanager
def _file_of(pem: Pem) -> Iterator[str]:
    """A path to it, for as long as it takes to read it: a context takes key pairs from files alone."""
    if not pem.text:
        yield pem.path
        return
    with TemporaryDirectory(prefix="berth-") as folder:
        path = Path(folder) / "pem"
        path.write_text(pem.text, encoding="ascii")
        yield str(path)


def _proxy(loaded: LoadedCredentials, address: Address) -> tuple[Address | None, str]:
    """The proxy on the way to the address, and its Proxy-Authorization header."""
    url = loaded.proxy_url
    if not url:
        proxies = getproxies_environment()
        url = proxies.get(address.scheme) or proxies.get("all", "")
        if not url or proxy_bypass_environment(address.host, proxies):
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
