"""The clusters of the table run on a loop whose time is virtual."""

from berth.simulation.cluster.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories():
    """The one loop that asynchronous tests below this folder get."""
    return {"virtual time": VirtualTimeLoop}
