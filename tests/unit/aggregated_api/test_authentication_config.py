"""The ConfigMap of the API server is followed."""

import json

from berth.aggregated_api.authentication_config import NAME, NAMESPACE, AuthenticationConfig
from berth.client.errors import RejectedError
from tests.failures.reporting import reports
from tests.unit.aggregated_api.certificates import TestAuthority


class ApiServer:
    """Has one ConfigMap, or an error."""

    def __init__(self, pem):
        self.data = {"requestheader-client-ca-file": pem}
        self.error = None

    async def get(self, resource, namespace, name):
        assert ("configmaps", NAMESPACE, NAME) == (resource.plural, namespace, name)
        if self.error is not None:
            raise self.error
        return json.dumps({"data": self.data}).encode()


async def test_a_new_authority_is_trusted_once_it_is_read():
    first, second = TestAuthority(), TestAuthority()
    server = ApiServer(first.pem)
    config = AuthenticationConfig(server)
    await config.read()
    before = config.trust.pem
    server.data["requestheader-client-ca-file"] = first.pem + second.pem
    await config.read()

    assert (first.pem, first.pem + second.pem) == (before, config.trust.pem)


@reports(
    "front-proxies-not-read", log="`front proxies not trusted`, once, with the cause; the last trust stays"
)
async def test_what_cannot_be_read_changes_nothing(caplog):
    """The last trust stays, and the log says once why."""
    authority = TestAuthority()
    server = ApiServer(authority.pem)
    config = AuthenticationConfig(server)
    await config.read()
    server.error = RejectedError(403, "Forbidden", "no")
    for _ in range(3):
        await config.read()

    assert authority.pem == config.trust.pem
    assert 1 == len([record for record in caplog.records if "front proxies not trusted" in record.message])


async def test_a_damaged_config_map_changes_nothing():
    authority = TestAuthority()
    server = ApiServer(authority.pem)
    config = AuthenticationConfig(server)
    await config.read()
    server.data = {"requestheader-client-ca-file": "damaged"}
    await config.read()

    assert authority.pem == config.trust.pem
