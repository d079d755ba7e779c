"""Classes of equal pods: those for which every plugin returns the same signature.

Plugins read of a pod what its template has, so `sign_pod` is called once for all pods of a template.
Source: KEP-5598; pkg/scheduler/framework/runtime/framework.go SignPod (Kubernetes v1.36).
"""

from collections.abc import Hashable
from weakref import WeakKeyDictionary

from berth.evaluation.caching.node_plugins import NodePlugins
from berth.framework.runtime import ProfilePlugins
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import Features, features_of
from berth.objects.pods.pod_template import PodTemplate
from berth.snapshot.bounded_cache import BoundedCache, size_of

MAX_BYTES = 32 << 20
BYTES_SIGNED = 16
"""About how many bytes a signature takes for each byte of the template."""
MAX_SIGNED_BYTES = 64 << 10
"""Larger pods are not signed: plugins sign in one go all that a pod says, while everything else waits."""


class Signature:
    """A class of equal pods and the plugins that run for it; one object for all pods of the class."""

    __slots__ = ("plugins",)

    def __init__(self, plugins: NodePlugins) -> None:
        self.plugins = plugins


class Signatures:
    """The signatures of one profile's plugins."""

    def __init__(self, plugins: ProfilePlugins) -> None:
        self._plugins = plugins
        self._by_features: dict[Features, NodePlugins] = {}
        self._of_template: WeakKeyDictionary[PodTemplate, Signature | None] = WeakKeyDictionary()
        self._known: BoundedCache[Hashable, Signature] = BoundedCache(MAX_BYTES)

    def plugins(self, pod: Pod) -> NodePlugins:
        """The plugins that run for the pod."""
        features = pod.template.derived(features_of)
        known = self._by_features.get(features)
        if known is None:
            known = self._by_features[features] = NodePlugins(self._plugins, features)
        return known

    def of(self, pod: Pod) -> Signature | None:
        """The pod's signature; None for a large pod, or where a plugin of this process does not sign it.

        A sidecar without a signature has no cache key for the pod: it is uncacheable, the others are cached.
        """
        signed = self._signed_here(pod)
        if signed is None:
            return None
        plugins = signed.plugins
        if not plugins.in_sidecars:
            return signed
        return self._interned((signed, *[plugin.sign_pod(pod) for plugin in plugins.in_sidecars]), plugins)

    def _signed_here(self, pod: Pod) -> Signature | None:
        """The signature by the plugins of this process alone."""
        template = pod.template
        if template.size_bytes > MAX_SIGNED_BYTES:
            return None
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
        known = self._known.get(signed)
        if known is None:
            known = Signature(plugins)
            self._known.put(signed, known, size_bytes or size_of(signed))
        return known
