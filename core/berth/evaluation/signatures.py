"""Which pods are one question: every plugin that has a say signs them alike.

Plugins read of a pod what its template has, so they are asked for their signatures once for all pods of a
template.
"""

from collections.abc import Hashable
from weakref import WeakKeyDictionary

from berth.evaluation.node_plugins import NodePlugins
from berth.framework.runtime import PluginSet
from berth.objects.pod import Pod
from berth.objects.pod_features import Features, features_of
from berth.objects.pod_template import PodTemplate
from berth.snapshot.recent import Recent, size_of

MAX_BYTES = 32 << 20
BYTES_SIGNED = 16
"""About how many bytes plugins sign for each byte of what they read."""


class Signature:
    """A question, put to these plugins; the same object for all pods that ask it."""

    __slots__ = ("plugins",)

    def __init__(self, plugins: NodePlugins) -> None:
        self.plugins = plugins


class Signatures:
    """The questions that one profile's plugins tell apart."""

    def __init__(self, plugins: PluginSet) -> None:
        self._plugins = plugins
        self._by_features: dict[Features, NodePlugins] = {}
        self._of_template: WeakKeyDictionary[PodTemplate, Signature | None] = WeakKeyDictionary()
        self._known: Recent[Hashable, Signature] = Recent(MAX_BYTES)

    def plugins(self, pod: Pod) -> NodePlugins:
        """The plugins that are asked about the pod."""
        features = pod.template.derived(features_of)
        known = self._by_features.get(features)
        if known is None:
            known = self._by_features[features] = NodePlugins(self._plugins, features)
        return known

    def of(self, pod: Pod) -> Signature | None:
        """The pod's question; None where some plugin of this process takes no two pods for equal.

        One in another process that does so has no basis for the pod: it is asked beside what is known.
        """
        signed = self._signed_here(pod)
        if signed is None:
            return None
        plugins = signed.plugins
        if not plugins.in_sidecars:
            return signed
        return self._interned((signed, *[plugin.sign_pod(pod) for plugin in plugins.in_sidecars]), plugins)

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
        plugins = self.plugins(pod)
        signatures = [plugin.sign_pod(pod) for plugin in plugins.here]
        if None in signatures:
            return None
        return self._interned((plugins.features, *signatures), plugins, size_bytes)

    def _interned(self, signed: Hashable, plugins: NodePlugins, size_bytes: int = 0) -> Signature:
        known = self._known[signed]
        if known is None:
            known = Signature(plugins)
            self._known.put(signed, known, size_bytes or size_of(signed))
        return known
