"""Host ports taken on nodes, found by protocol and number: no port is compared with all others."""

from collections.abc import Collection, Iterable

from berth.objects.pods.host_ports import HostPort, HostPorts
from berth.snapshot.columns.flag_columns import FlagColumns
from berth.snapshot.columns.growing import Mask


class PortColumns:
    """Which nodes have which host port taken."""

    def __init__(self, capacity: int) -> None:
        self._taken = FlagColumns[HostPort](capacity)
        self._distinct = HostPorts()

    def set_row(self, row: int, ports: Collection[HostPort]) -> None:
        """Say what one node's pods claim."""
        before, now = dict.fromkeys(self._taken.on(row)), dict.fromkeys(ports)
        self._taken.set_row(row, tuple(now))
        for port in now:
            if port not in before:
                self._distinct.add(port)
        self._forget([port for port in before if port not in now])

    def on(self, row: int) -> Collection[HostPort]:
        """The ports that one node's pods claim."""
        return self._taken.on(row)

    def drop_row(self, row: int) -> None:
        """Forget a removed node's ports."""
        before = self._taken.on(row)
        self._taken.drop_row(row)
        self._forget(before)

    def grow(self, capacity: int) -> None:
        """Make room for more nodes."""
        self._taken.grow(capacity)

    def move_row(self, source: int, target: int) -> None:
        """Carry a row over to another that was dropped."""
        self._taken.move_row(source, target)

    def conflicts(self, wanted: Iterable[HostPort], n: int) -> Mask | None:
        """Where one of the ports is taken, by the first n nodes; None where it is nowhere.

        Shapes: result bool (n,).
        """
        used = [port for one in wanted for port in self._distinct.conflicting(one)]
        return self._taken.any_of(used, n) if used else None

    def _forget(self, before: Collection[HostPort]) -> None:
        for port in before:
            if not self._taken.holders(port):
                self._distinct.discard(port)
