"""Which pods are one question: every plugin that has a say signs them alike.

Pods of one workload are written alike, so plugins are asked for their signatures once for all of them.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from hashlib import blake2b

from berth.framework.interface import Plugin
from berth.objects.pod import Pod
from berth.objects.pod_content import content
from berth.snapshot.recent import Recent, size_of

MOST_REMEMBERED = 8192
MOST_BYTES = 32 << 20
BYTES_SIGNED = 16
"""About how many bytes plugins sign for each byte of what they read."""


class Signature:
    """A question; the same object for all pods that ask it."""

    __slots__ = ()


class Signatures:
    """The questions that one profile's plugins tell apart."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        every = list(plugins)
        self._here = [plugin for plugin in every if plugin.in_process]
        self._elsewhere = [plugin for plugin in every if not plugin.in_process]
        self._written: OrderedDict[bytes, Hashable | None] = OrderedDict()
        self._known: Recent[Hashable, Signature] = Recent(MOST_BYTES)

    def of(self, pod: Pod) -> Signature | None:
        """The pod's question; None where some plugin tells every pod from all others."""
        signed = self._signed_here(pod)
        if signed is None:
            return None
        elsewhere = [plugin.sign_pod(pod) for plugin in self._elsewhere]
        if None in elsewhere:
            return None
        return self._interned((signed, *elsewhere) if elsewhere else signed)

    def _signed_here(self, pod: Pod) -> Hashable | None:
        """What the plugins of this process say, as one small value."""
        read = content(pod)
        if read is None:
            return self._ask(pod)
        written = blake2b(read, digest_size=32).digest()
        if written in self._written:
            return self._written[written]
        signed = self._written[written] = self._ask(pod, len(read) * BYTES_SIGNED)
        if len(self._written) > MOST_REMEMBERED:
            self._written.popitem(last=False)
        return signed

    def _ask(self, pod: Pod, size_bytes: int = 0) -> Hashable | None:
        signatures = [plugin.sign_pod(pod) for plugin in self._here]
        return None if None in signatures else self._interned(tuple(signatures), size_bytes)

    def _interned(self, signed: Hashable, size_bytes: int = 0) -> Signature:
        if isinstance(signed, Signature):
            return signed
        known = self._known[signed]
        if known is None:
            known = Signature()
            self._known.put(signed, known, size_bytes or size_of(signed))
        return known
