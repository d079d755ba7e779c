"""Users of a kubeconfig whose credentials another program gives: exec plugins and auth-providers.

Running them, OIDC and renewal are the `kubernetes` package's; it is imported when the first such user is met,
because that takes about a second of CPU.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from berth.client.authentication.kubeconfig import KubeconfigContext, NamedEntry
from berth.client.authentication.loaded_credentials import LoadedCredentials, Pem
from berth.client.errors import ConfigurationError

KINDS = ("exec", "auth-provider")
BEARER = "BearerToken"
RENEW = "renew the credentials"


def given_by_plugin(user: NamedEntry | None) -> str:
    """The kind of plugin that gives this user's credentials, empty for none."""
    return next((kind for kind in KINDS if user is not None and kind in user.value), "")


def with_plugin(
    loaded: LoadedCredentials, chosen: KubeconfigContext, user: NamedEntry, kind: str
) -> LoadedCredentials:
    """The same cluster, with the credentials that the plugin gives.

    Raises: ConfigurationError where it gives none.
    """
    package = import_module("kubernetes.config.kube_config")
    configuration = package.Configuration()
    where = f"users[{user.name}].user"
    try:
        with _overheard() as complaints:
            merged = package.KubeConfigMerger(chosen.paths).config
            loader = package.KubeConfigLoader(
                merged, active_context=chosen.context.name, config_base_path=None
            )
            loader.load_and_set(configuration)
    except Exception as error:
        # Beside its own errors the package lets through whatever an odd file makes it stumble over.
        raise ConfigurationError(user.file, where, str(error), "check the files and data it names") from error
    if not (configuration.api_key.get(BEARER) or configuration.cert_file):
        problem = "; ".join(complaints) or "it gave neither a token nor a certificate"
        raise ConfigurationError(user.file, f"{where}.{kind}", problem, "run it by hand to see why")
    return loaded._replace(
        header=partial(_header, configuration, user.file),
        certificate=Pem(configuration.cert_file or ""),
        key=Pem(configuration.key_file or ""),
    )


def _header(configuration: Any, file: str) -> str:
    try:
        with _overheard() as complaints:
            value = configuration.get_api_key_with_prefix(BEARER)
    except Exception as error:
        # Plugins and OIDC fail in ways of their own; all mean that there is no token.
        raise ConfigurationError(file, "users", f"no token: {error}", RENEW) from error
    if complaints:
        raise ConfigurationError(file, "users", f"no token: {'; '.join(complaints)}", RENEW)
    return str(value or "").strip()


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
