"""The service account that a pod has its token mounted of.

Source: client-go rest/config.go InClusterConfig (Kubernetes v1.36).
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from berth.client.authentication.kubeconfig_credentials import token_header
from berth.client.authentication.loaded_credentials import LoadedCredentials, Pem
from berth.client.endpoint import Address
from berth.client.errors import ConfigurationError

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
REMEDY = "let the pod mount its service account, or pass --kubeconfig"


def from_service_account(environ: Mapping[str, str]) -> LoadedCredentials:
    """The server that the environment names, and the mounted token and authority.

    Raises: ConfigurationError.
    """
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "")
    if not port.isdecimal():
        raise ConfigurationError("", "KUBERNETES_SERVICE_PORT", f"{port!r} is not a port", REMEDY)
    # Where containers have no mount namespace, this variable says what mount paths stand behind.
    root = environ.get("CONTAINER_SANDBOX_MOUNT_POINT", "").rstrip("/")
    token, authority = f"{root}{FOLDER}/token", f"{root}{FOLDER}/ca.crt"
    for path in (token, authority):
        try:
            empty = not Path(path).read_bytes().strip()
        except OSError as error:
            raise ConfigurationError(path, "", f"cannot be read: {error.strerror}", REMEDY) from error
        if empty:
            raise ConfigurationError(path, "", "is empty", REMEDY)
    server = f"https://{Address('https', host, int(port)).authority}"
    header = partial(token_header, token, token, "")
    return LoadedCredentials(
        server, authority, header, Pem(authority), server_field="KUBERNETES_SERVICE_HOST"
    )
