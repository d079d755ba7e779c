"""Credentials as they were read, whichever way they came: what an Endpoint is made of.

Made by: kubeconfig_credentials, service_account, plugin_credentials. Read by: credentials.
"""

from collections.abc import Callable
from typing import NamedTuple


class Pem(NamedTuple):
    """Certificates or keys, as text or in a file; neither where there are none."""

    path: str = ""
    text: str = ""


class LoadedCredentials(NamedTuple):
    """A server, what proves who it is and who we are, and the fields to name in errors.

    `header` gives the Authorization header's value now, empty for none; it may read a file or run a plugin.
    Raises of `header`: ConfigurationError.
    """

    server: str
    file: str
    header: Callable[[], str]
    authority: Pem = Pem()
    certificate: Pem = Pem()
    key: Pem = Pem()
    verify: bool = True
    server_name: str = ""
    proxy_url: str = ""
    server_field: str = ""
    authority_field: str = ""
    certificate_field: str = ""
