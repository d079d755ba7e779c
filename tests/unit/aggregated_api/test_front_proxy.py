"""Which user a request comes from, by its certificate and its headers."""

import json

import pytest
from multidict import CIMultiDict

from berth.aggregated_api.front_proxy import Trust, read_trust
from berth.aggregated_api.users import AUTHENTICATED, User
from tests.unit.aggregated_api.certificates import DAY, TestAuthority

PROXY, CLIENTS, STRANGER = TestAuthority(), TestAuthority("cluster-ca"), TestAuthority("stranger")
JANE = CIMultiDict([("X-Remote-User", "jane"), ("X-Remote-Group", "devs"), ("X-Remote-Group", "qa")])


def trust(**changes):
    fields = {"front_proxies": (PROXY.pem,), "clients": (CLIENTS.pem,)}
    return Trust(**fields | {"allowed_names": ("front-proxy",)} | changes)


def test_a_front_proxy_names_the_user():
    """Name, groups, and the group of all who are authenticated."""
    expected = User("jane", groups=("devs", "qa", AUTHENTICATED))

    assert expected == trust().user(PROXY.show("front-proxy"), JANE)


def test_more_about_the_user():
    """UID and extra headers go along, the latter by names that are lower-cased and unquoted."""
    headers = CIMultiDict({**JANE, "X-Remote-Uid": "7", "X-Remote-Extra-Acme.com%2FTeam": "red"})
    found = trust(uid_headers=("X-Remote-Uid",)).user(PROXY.show("front-proxy"), headers)

    assert ("7", {"acme.com/team": ["red"]}) == (found.uid, found.extra)


@pytest.mark.parametrize(
    "certificate",
    [
        pytest.param(None, id="no certificate"),
        pytest.param(PROXY.show("someone"), id="a name that is not allowed"),
        pytest.param(PROXY.show("front-proxy", life=-DAY), id="run out"),
        pytest.param(STRANGER.show("front-proxy"), id="another authority"),
        pytest.param(b"no certificate", id="not a certificate"),
    ],
)
def test_headers_alone_name_no_user(certificate):
    """X-Remote-User counts only beside a certificate of a front proxy."""
    assert None is trust().user(certificate, JANE)


def test_any_name_where_none_is_listed():
    """Without a list of names the authority is enough."""
    assert "jane" == trust(allowed_names=()).user(PROXY.show("someone"), JANE).username


def test_a_front_proxy_that_names_no_user():
    assert None is trust().user(PROXY.show("front-proxy"), CIMultiDict())


def test_a_client_of_the_cluster():
    """Common name and organizations are user and groups; its headers count for nothing."""
    expected = User("bob", groups=("ops", AUTHENTICATED))

    assert expected == trust().user(CLIENTS.show("bob", "ops"), JANE)


def test_a_client_is_no_front_proxy():
    """The authority of clients vouches for no front proxy, even of the right name."""
    assert "front-proxy" == trust().user(CLIENTS.show("front-proxy"), JANE).username


def test_config_map():
    """What the API server publishes is read."""
    data = {
        "requestheader-client-ca-file": PROXY.pem,
        "client-ca-file": CLIENTS.pem,
        "requestheader-allowed-names": json.dumps(["front-proxy"]),
        "requestheader-username-headers": json.dumps(["X-Remote-User"]),
        "requestheader-group-headers": json.dumps(["X-Remote-Group"]),
        "requestheader-extra-headers-prefix": json.dumps(["X-Remote-Extra-"]),
    }
    found = read_trust(data)

    assert trust() == found
    assert PROXY.pem + CLIENTS.pem == found.pem


@pytest.mark.parametrize(
    ("field", "text"),
    [("client-ca-file", "no PEM"), ("requestheader-allowed-names", "front-proxy"), ("client-ca-file", "é")],
)
def test_damaged_config_map(field, text):
    """The field that can't be read is named."""
    with pytest.raises(ValueError, match=field):
        read_trust({field: text})


def test_an_empty_config_map_trusts_no_proxy():
    found = read_trust({})

    assert ("", None) == (found.pem, found.user(PROXY.show("front-proxy"), JANE))
