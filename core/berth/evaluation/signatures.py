"""Which pods are one question: every plugin that has a say signs them alike.

Plugins read of a pod what its template has, so they are asked for their signatures once for all pods of a
template.
"""

from collections.abc import Hashable, Iterable
from weakref import WeakKeyDictionary

from berth.framework.interface import Plugin
from berth.objects.pod import Pod
from berth.objects.pod_template import PodTemplate
from berth.snapshot.recent import Recent, size_of

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
        self._in_sidecars = [plugin for plugin in every if not plugin.in_process]
        self._of_template: WeakKeyDictionary[PodTemplate, Signature | None] = WeakKeyDictionary()
        self._known: Recent[Hashable, Signature] = Recent(MOST_BYTES)

    def of(self, pod: Pod) -> Signature | None:
        """The pod's question; None where some plugin of this process takes no two pods for equal.

        One in another process that does so has no basis for the pod: it is asked beside what is known.
        """
        signed = self._signed_here(pod)
        if signed is None:
            return None
        in_sidecars = [plugin.sign_pod(pod) for plugin in self._in_sidecars]
        return self._interned((signed, *in_sidecars)) if in_sidecars else signed

    def _signed_here(self, pod: Pod) -> Signature | None:
        """What the plugins of this process say."""
        template = pod.template
        if template.has_ephemeral_claims:
            return self._ask(pod)
        try:
            return self._of_template[template]
        except KeyError:
            signed = self._of_template[template] = self._ask(pod, template.size_bytes * BYTES_SIGNED)
            return signed

    def _ask(self, pod: Pod, size_bytes: int = 0) -> Signature | None:
        signatures = [plugin.sign_pod(pod) for plugin in self._here]
        return None if None in signatures else self._interned(tuple(signatures), size_bytes)

    def _interned(self, signed: Hashable, size_bytes: int = 0) -> Signature:
        known = self._known[signed]
        if known is None:
            known = Signature()
            self._known.put(signed, known, size_bytes or size_of(signed))
        return known
