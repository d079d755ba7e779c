"""Device tables in one line each."""

from msgspec.json import encode

from berth_gpu_share.contract import WHOLE
from berth_gpu_share.devices import DeviceTable, Share
from berth_sdk.objects import decode_node
from tests.unit.gpu_share.builders import gpu_node


def table_of(*rows, seed=0):
    """Return a table of nodes with 64 cores whose devices have this much left."""
    table = DeviceTable(seed)
    for index, row in enumerate(rows):
        shares = [Share((i,), WHOLE - left, 0) for i, left in enumerate(row) if left < WHOLE]
        table.put(index, decode_node(encode(gpu_node(f"n{index}", len(row)))), shares)
    return table
