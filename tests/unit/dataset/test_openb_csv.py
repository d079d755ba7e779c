"""The trace's own files: a broken line gives one line of text that says where, what and how to go on."""

import pytest

from berth.demo.dataset import BrokenLineError, DatasetError, OpenbFiles, UnreadableSourceError

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,262144,0,\nn-1,96000,393216,8,G2\n"
POD_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
PODS = (
    POD_HEADER
    + "p-0,12000,16384,1,460,,LS,Running,0,12537496,0\n"
    + "p-1,4000,8192,0,0,,BE,Pending,5,6,\n"
    + "p-2,4000,0,2,1000,G2|T4,Burstable,Failed,5,6,7\n"
)


@pytest.fixture
def load(tmp_path):
    def load(nodes=NODES, pods=PODS):
        for name, text in (
            ("openb_node_list_all_node.csv", nodes),
            ("openb_pod_list_default.csv", pods),
        ):
            if text is not None:
                (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return OpenbFiles(tmp_path).load()

    return load


@pytest.mark.parametrize(
    ("pods", "says"),
    [
        pytest.param(
            "", ":1: header: found no header; the first line must read name,cpu_milli,", id="empty file"
        ),
        pytest.param(PODS.partition("\n")[2], ":1: header: found 'p-0,12000,", id="no header"),
        pytest.param(POD_HEADER, ":2: first row: found the end of the file", id="no row"),
        pytest.param(
            PODS.replace("12000", "12k"),
            ":2: column 2 (cpu_milli): found '12k', expected a whole number from 0 to 1000000000",
            id="suffix",
        ),
        pytest.param(PODS.replace("12000", "-1"), ":2: column 2 (cpu_milli): found '-1'", id="negative"),
        pytest.param(PODS.replace("12000", ""), ":2: column 2 (cpu_milli): found ''", id="missing figure"),
        pytest.param(PODS.replace("12000", "1_0"), ":2: column 2 (cpu_milli): found '1_0'", id="underscore"),
        pytest.param(PODS.replace("12000", " 12"), ":2: column 2 (cpu_milli): found ' 12'", id="space"),
        pytest.param(PODS.replace("16384", "1.5"), ":2: column 3 (memory_mib): found '1.5'", id="fraction"),
        pytest.param(PODS.replace("16384", "9" * 13), ":2: column 3 (memory_mib): found '9999", id="huge"),
        pytest.param(
            PODS.replace("16384", "\u0661"), ":2: column 3 (memory_mib): found", id="digit of another script"
        ),
        pytest.param(
            PODS.replace(",1,460", ",9,460"),
            ":2: column 4 (num_gpu): found '9', expected a whole number from 0 to 8",
            id="too many GPUs",
        ),
        pytest.param(
            PODS.replace("460", "1001"), ":2: column 5 (gpu_milli): found '1001'", id="more than a GPU"
        ),
        pytest.param(
            PODS.replace("460", "0"), ":2: column 5 (gpu_milli): found 0, expected a share", id="no share"
        ),
        pytest.param(
            PODS.replace("0,0,,BE", "0,5,,BE"),
            ":3: column 5 (gpu_milli): found 5, expected 0, as num_gpu is 0",
            id="share without GPU",
        ),
        pytest.param(
            PODS.replace("2,1000", "2,500"), ":4: column 5 (gpu_milli): found 500, expected 1000", id="halves"
        ),
        pytest.param(
            PODS.replace("G2|T4", "G2||T4"), ":4: column 6 (gpu_spec): found 'G2||T4'", id="no model"
        ),
        pytest.param(
            PODS.replace("0,0,,BE", "0,0,T4,BE"),
            ":3: column 6 (gpu_spec): found 'T4', expected nothing",
            id="model without GPU",
        ),
        pytest.param(PODS.replace("BE", "b e"), ":3: column 7 (qos): found 'b e'", id="qos is no label"),
        pytest.param(PODS.replace("Pending", "Gone"), ":3: column 8 (pod_phase): found 'Gone'", id="phase"),
        pytest.param(
            PODS.replace("12537496", "soon"), ":2: column 10 (deletion_time): found 'soon'", id="time"
        ),
        pytest.param(PODS.replace("p-1", "P_1"), ":3: column 1 (name): found 'P_1'", id="no Kubernetes name"),
        pytest.param(
            PODS.replace("p-2", "p-0"),
            ":4: column 1 (name): found 'p-0', expected a name that line 2 does not have",
            id="repeated name",
        ),
        pytest.param(
            PODS.replace(",LS", ""), ":2: column 11: found 10 values, expected 11", id="value missing"
        ),
        pytest.param(
            PODS.replace("LS", "LS,x"), ":2: column 12: found 12 values, expected 11", id="extra value"
        ),
        pytest.param(
            PODS.replace("p-1", "\np-1"), ":3: column 1: found 0 values, expected 11", id="empty line"
        ),
        pytest.param(PODS + "p-3,40", ":5: column 3: found 2 values, expected 11", id="cut off"),
        pytest.param(PODS.replace("p-1", '"p-1'), ":3: text: found no CSV (", id="open quote"),
        pytest.param(
            PODS.encode().replace(b"BE", b"\xff"),
            ":3: text: found byte 0xff; save the file as UTF-8",
            id="bytes",
        ),
        pytest.param(PODS.encode("utf-16"), ":1: text: found byte 0xff; save", id="UTF-16"),
    ],
)
def test_broken_pod_line(load, pods, says):
    """A broken pod list names its file, line, column, finding and remedy, in one line."""
    with pytest.raises(BrokenLineError) as caught:
        load(pods=pods)

    assert f"openb_pod_list_default.csv{says}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "; " in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        pytest.param(
            NODES.replace("G2", ""),
            ":3: column 5 (model): found nothing, expected the model of the node's 8 GPUs",
            id="GPUs without a model",
        ),
        pytest.param(
            NODES.replace("0,\n", "0,T4\n"),
            ":2: column 5 (model): found 'T4', expected nothing, as the node has no GPU",
            id="model without GPUs",
        ),
        pytest.param(NODES.replace("G2", "G 2"), ":3: column 5 (model): found 'G 2'", id="model is no label"),
        pytest.param(NODES.replace("n-1", "n-0"), ":3: column 1 (sn): found 'n-0'", id="repeated name"),
        pytest.param(NODES.replace("n-1", ""), ":3: column 1 (sn): found ''", id="no name"),
        pytest.param(PODS, ":1: header: found 'name,cpu_milli,", id="the other list"),
    ],
)
def test_broken_node_line(load, nodes, says):
    """A broken node list is refused in the same words."""
    with pytest.raises(BrokenLineError) as caught:
        load(nodes=nodes)

    assert f"openb_node_list_all_node.csv{says}" in str(caught.value)


def test_missing_file(load):
    """A folder without the pod list is refused with the path of what is missing."""
    with pytest.raises(
        UnreadableSourceError, match=r"openb_pod_list_default\.csv: No such file or directory; "
    ):
        load(pods=None)


@pytest.mark.parametrize(
    "change", [str, lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")]
)
def test_harmless_differences(load, change):
    """A byte order mark or Windows line ends change nothing."""
    assert load() == load(change(NODES), change(PODS))


def test_zeros_are_kept(load):
    """A task without memory asks for 0, which is not the same as asking for nothing."""
    requests = load().pods[2]["spec"]["containers"][0]["resources"]["requests"]

    assert requests == {"cpu": "4000m", "memory": "0Mi", "gpu-share.berth.dev/milli-gpu": "2000"}


def test_nothing_is_half_loaded(load):
    """An error in the last line of the last file leaves no objects behind."""
    with pytest.raises(DatasetError):
        load(pods=PODS + "broken")
