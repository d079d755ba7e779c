"""What a kubeconfig's cluster and user say by themselves: files, data, tokens and passwords.

Users whose credentials another program gives (exec, auth-provider) are plugin_credentials'.

Source: client-go tools/clientcmd/client_config.go (Kubernetes v1.36).
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path

from berth.client.authentication.kubeconfig import KubeconfigContext, NamedEntry
from berth.client.authentication.loaded_credentials import LoadedCredentials, Pem
from berth.client.errors import ConfigurationError


def from_kubeconfig(chosen: KubeconfigContext) -> LoadedCredentials:
    """The cluster, and what the user says without the help of a plugin.

    Raises: ConfigurationError where a file or data that they name can't be read.
    """
    cluster, user = chosen.cluster, chosen.user
    where = f"clusters[{cluster.name}].cluster"
    loaded = LoadedCredentials(
        cluster.value["server"],
        cluster.file,
        _no_header,
        authority=_pem(cluster, where, "certificate-authority"),
        verify=not cluster.value.get("insecure-skip-tls-verify"),
        server_name=cluster.value.get("tls-server-name") or "",
        proxy_url=cluster.value.get("proxy-url") or "",
        server_field=f"{where}.server",
        authority_field=f"{where}.certificate-authority",
    )
    return loaded if user is None else _with_user(loaded, user)


def _with_user(loaded: LoadedCredentials, user: NamedEntry) -> LoadedCredentials:
    where = f"users[{user.name}].user"
    field = f"{where}.client-certificate"
    certificate = _pem(user, where, "client-certificate")
    key = _pem(user, where, "client-key")
    if any(certificate) and not any(key):
        raise ConfigurationError(user.file, f"{where}.client-key", "is missing", f"give the key of {field}")
    return loaded._replace(
        header=_header(user, where), certificate=certificate, key=key, certificate_field=field
    )


def _header(user: NamedEntry, where: str) -> Callable[[], str]:
    """A token's file is read at each call, and goes before a token, as in client-go."""
    value = user.value
    if value.get("tokenFile"):
        path = _beside(user.file, value["tokenFile"])
        return partial(token_header, path, user.file, f"{where}.tokenFile")
    if value.get("token"):
        return partial(str, f"Bearer {value['token'].strip()}")
    if value.get("username"):
        login = f"{value['username']}:{value.get('password', '')}"
        return partial(str, f"Basic {b64encode(login.encode()).decode('ascii')}")
    return _no_header


def token_header(path: str, file: str, field: str) -> str:
    """The bearer token that the file holds now.

    Raises: ConfigurationError.
    """
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(file, field, f"no token: {error}", "renew the credentials") from error
    if not token:
        raise ConfigurationError(file, field, f"no token: {path} is empty", "renew the credentials")
    return f"Bearer {token}"


def _no_header() -> str:
    return ""


def _pem(entry: NamedEntry, where: str, field: str) -> Pem:
    """Data goes before a file, as in client-go; a file's path is relative to the kubeconfig's folder."""
    data, path = entry.value.get(f"{field}-data"), entry.value.get(field)
    if data:
        try:
            return Pem(text=b64decode(data, validate=True).decode("ascii"))
        except (binascii.Error, ValueError) as error:
            problem = f"is not base64 of a PEM text: {error}"
            raise ConfigurationError(entry.file, f"{where}.{field}-data", problem, "encode it") from error
    if not path:
        return Pem()
    found = _beside(entry.file, path)
    try:
        Path(found).read_bytes()
    except OSError as error:
        problem = f"{found} cannot be read: {error.strerror}"
        raise ConfigurationError(entry.file, f"{where}.{field}", problem, "name a PEM file") from error
    return Pem(path=found)


def _beside(file: str, path: str) -> str:
    return str(Path(file).parent / path)
