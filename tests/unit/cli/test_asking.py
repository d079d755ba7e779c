"""A scheduler that cannot be asked: what the command says, and what to do."""

import ssl
from urllib.error import URLError

import pytest

from berth.cli.asking import secure_port as asking
from berth.cli.asking.secure_port import Server
from tests.failures.reporting import reports

ADDRESS = "https://127.0.0.1:10259"


@reports(
    "answer-refused",
    answer="the command: why it has no answer, and what helps, such as `--server`; exit status `2`",
)
@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        pytest.param(
            ssl.SSLCertVerificationError("self-signed certificate"),
            "--certificate-authority",
            id="certificate",
        ),
        pytest.param(ConnectionRefusedError("Connection refused"), "--server", id="address"),
    ],
)
def test_remedy(reason, remedy, monkeypatch, capsys):
    """The flag that it names is the one that helps."""

    def refused(*_arguments, **_options):
        raise URLError(reason)

    monkeypatch.setattr(asking.urllib.request, "urlopen", refused)

    with pytest.raises(SystemExit) as ended:
        Server(ADDRESS).ask("/plugins")

    assert 2 == ended.value.code
    assert capsys.readouterr().err.rstrip().endswith(remedy)
