"""The file from which FGD takes what usually comes."""

import pytest

from berth_gpu_share.contract import Demand
from berth_gpu_share.workload_file import WorkloadError, usual_pods


def test_kinds_add_up(tmp_path):
    """Entries of one kind are counted together; no models means any."""
    path = tmp_path / "workload.json"
    path.write_text(
        '[{"number": 3, "cpu": 4000, "count": 1, "milli": 460}, {"number": 2, "cpu": 4000, "count": 1,'
        ' "milli": 460}, {"number": 1, "cpu": 8000}, {"number": 1, "cpu": 0, "count": 2, "milli": 1000,'
        ' "models": ["A10", "T4"]}]'
    )

    assert usual_pods(path) == {
        Demand(1, 460, cpu=4000): 5,
        Demand(0, 0, cpu=8000): 1,
        Demand(2, 1000, frozenset({"A10", "T4"})): 1,
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(
            '[{"number": 1, "cpu": 1, "count": 2, "milli": 500}]', r"2 x 500 milli.*\$\[0\]", id="shares"
        ),
        pytest.param('[{"number": 1, "cpu": 1, "count": 1}]', "1 x 0 milli", id="a GPU without a share"),
        pytest.param('[{"number": 0, "cpu": 1}]', "number is above 0", id="none of them"),
        pytest.param('[{"number": 1}]', "`cpu`", id="a field is missing"),
        pytest.param("[", "truncated", id="no JSON"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, complaint):
    """The text says which entry is wrong, and why."""
    path = tmp_path / "workload.json"
    path.write_text(text)

    with pytest.raises(WorkloadError, match=complaint) as raised:
        usual_pods(path)
    assert str(path) in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    """A path that leads nowhere is reported."""
    with pytest.raises(WorkloadError, match="No such file"):
        usual_pods(tmp_path / "nothing.json")
