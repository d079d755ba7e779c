"""A configuration that is wrong, too deep or too long is refused with a reason, and runs nothing."""

from contextlib import suppress

import pytest

from berth.config import load
from berth.config.errors import DecodeError
from tests.hostile.work import growth

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
ARGS = HEAD + "profiles:\n- pluginConfig:\n  - name: NodeAffinity\n    args:\n"


def aliases(levels, indent=""):
    """Lists of lists of lists by reference: nine to the power of so many."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join(9 * [f'*a{i - 1}'])}]" for i in range(1, levels)]
    return "".join(f"{indent}{line}\n" for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD + aliases(9), id="aliases of aliases"),
        pytest.param(ARGS + aliases(8, "      "), id="aliases in a plugin's arguments"),
        pytest.param(HEAD + "profiles: &a [*a]\n", id="an anchor within itself"),
        pytest.param(HEAD + "profiles: " + "[" * 400 + "]" * 400, id="deep lists"),
        pytest.param(HEAD + "profiles: " + "{a: " * 400 + "1" + "}" * 400, id="deep maps"),
        pytest.param('{"a":' * 5_000 + "1" + "}" * 5_000, id="deep JSON"),
        pytest.param(HEAD + "percentageOfNodesToScore: " + "9" * 5_000, id="a long number"),
        pytest.param(HEAD + "parallelism: 0x" + "f" * 5_000, id="a long number in another base"),
        pytest.param(HEAD + "parallelism: " + "1:" * 2_000 + "1", id="a number in base 60"),
        pytest.param(HEAD + "parallelism: .nan", id="not a number"),
        pytest.param(HEAD + "parallelism: .inf", id="infinity"),
        pytest.param(HEAD + "percentageOfNodesToScore: 2147483648", id="one more than 32 bits"),
        pytest.param(HEAD + "leaderElection: {leaseDuration: " + "9" * 400 + "h}", id="a long time"),
        pytest.param(HEAD + 'profiles: "\\0"', id="a nought"),
        pytest.param(HEAD + 'profiles: "\\ud800"', id="half a character"),
        pytest.param(HEAD + "profiles: !!binary aGVsbG8=", id="bytes"),
        pytest.param(HEAD + "profiles: 2026-01-01", id="a date"),
        pytest.param(HEAD + "\tprofiles: a", id="a tab"),
        pytest.param(HEAD + "".join(f"k{i}: 1\n" for i in range(500)), id="unknown fields"),
        pytest.param(HEAD + "profiles: " + "x" * 100_000, id="a long word"),
    ],
)
def test_it_is_refused(text):
    with pytest.raises(DecodeError):
        load(text)


def test_a_tag_runs_nothing(tmp_path):
    called = tmp_path / "called"
    with suppress(DecodeError):
        load(f"{HEAD}profiles: !!python/object/apply:pathlib.Path.touch [{called}]\n")

    assert not called.exists()


@pytest.mark.parametrize("document", ["k{}: 1\n", "# {}\n", "---\n"])
def test_reading_is_linear(document):
    def work(n):
        text = HEAD + "".join(document.format(i) for i in range(n))

        def read():
            with suppress(DecodeError):
                load(text)

        return read

    assert growth(work, 100) < 1.3
