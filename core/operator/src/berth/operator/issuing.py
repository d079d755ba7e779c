"""What the operator issues: its own authority, a certificate for each scheduler, one for itself.

    Secret berth-operator-ca             authorities with their keys, in the operator's namespace
    ConfigMap berth-operator-ca          what clients of the operator are to trust
    Secret berth-serving-certificates    in each namespace: a certificate and a key for each Scheduler there

The names are fixed, so that the operator needs no right to any other Secret. In the last one each Scheduler's
pair is applied in the name of a field manager of its own: server-side apply keeps those of the others.

Called by: reconciler; process, for the operator's own port.
"""

import asyncio
import ssl
from collections.abc import Callable
from datetime import date, datetime
from typing import Final

import msgspec

from berth.client.api import Api
from berth.client.errors import NotFoundError
from berth.client.resources import CONFIG_MAPS, Resource
from berth.operator.certificates import Authorities, Authority, Pair, decoded, encoded
from berth.operator.drift import differs
from berth.operator.errors import ReservedNameError
from berth.operator.kinds import (
    AUTHORITY,
    FIELD_MANAGER,
    MANAGED_BY,
    SECRETS,
    SERVING_SECRET,
    Json,
    SchedulerKey,
    key_of,
)
from berth.operator.managed_objects import NONE_THERE, about, apply
from berth.operator.observed import ClusterView, KindCache, ObjectName
from berth.operator.rendering.names import CA_FILE, owner_reference, serving_files, serving_names
from berth.serving.serving_certificate import Certificate, SelfMade, context_of

_OWN_NAME: Final = "berth-operator"
"""What the operator's certificate is valid for, whatever a kustomization makes of its Service's name."""


class Issuing:
    """Keeps authority and certificates; `namespace` is the operator's own.

    Schedulers there answer by the name of `explain_service`, too, where there is one.
    """

    def __init__(
        self,
        api: Api,
        observed: ClusterView,
        namespace: str,
        now: Callable[[], datetime],
        explain_service: str = "",
    ) -> None:
        self._api = api
        self._observed = observed
        self._namespace = namespace
        self._now = now
        self._explain_service = explain_service
        # Several Schedulers are looked at at a time: one authority is made for all of them.
        self._writing = asyncio.Lock()

    async def bundle(self) -> str:
        """Give what clients of schedulers are to trust; makes, renews and publishes the authority first.

        Raises: ClientError, ReservedNameError.
        """
        async with self._writing:
            known, found = self._authorities(), self._seen(self._observed.authority)
            renewed = known.renewed(self._now())
            wanted = self._document("Secret", {"data": renewed.data()})
            if renewed is not known or differs(found, wanted):
                await self._write(self._observed.authority, SECRETS, wanted)
            published, text = self._seen(self._observed.published), renewed.bundle()
            wanted = self._document("ConfigMap", {"data": {CA_FILE: text}})
            if differs(published, wanted):
                await self._write(self._observed.published, CONFIG_MAPS, wanted)
            return text

    async def keep(self, scheduler: Json) -> None:
        """Issue a Scheduler's certificate, unless there is one that is good.

        Raises: ClientError, ReservedNameError.
        """
        key, signer = key_of(scheduler), self._signer()
        mirror, owner = self._observed.certificates, owner_reference(scheduler)
        found = mirror.objects.get(ObjectName(key.namespace, SERVING_SECRET))
        if signer is None or (found is not None and self._is_good(signer, key, owner, found)):
            return
        pair = signer.issue(self._names(key), self._now())
        wanted = _document("Secret", key.namespace, SERVING_SECRET, {"data": _data(key, pair)})
        wanted["metadata"]["ownerReferences"] = [owner]
        async with self._writing:
            await self._write(mirror, SECRETS, wanted, _manager(key))

    async def collect(self, key: SchedulerKey) -> None:
        """Take away what was issued for a Scheduler that is gone. Raises: ClientError."""
        found = self._observed.certificates.objects.get(ObjectName(key.namespace, SERVING_SECRET))
        if found is None or not _is_ours(found):
            return
        data, files = found.get("data") or {}, set(serving_files(key.name))
        if files.isdisjoint(data):
            return
        head = {name: found["metadata"][name] for name in ("uid", "resourceVersion")}
        try:
            if files.issuperset(data):
                body = msgspec.json.encode({"preconditions": head})
                await self._api.delete(SECRETS, key.namespace, SERVING_SECRET, body)
            else:
                rest = _document("Secret", key.namespace, SERVING_SECRET, {})
                rest["metadata"] |= head
                await apply(self._api, SECRETS, rest, manager=_manager(key))
        except NotFoundError:  # it went with its last owner
            return

    def own_certificate(self) -> Certificate:
        """Give the operator's own: self-signed until there is an authority, then issued anew each day."""
        return _OwnCertificate(self._own_pair, self._now)

    def _own_pair(self) -> Pair | None:
        signer = self._signer()
        names = (f"{_OWN_NAME}.{self._namespace}.svc", f"{_OWN_NAME}.{self._namespace}", _OWN_NAME)
        return None if signer is None else signer.issue(names, self._now())

    def _authorities(self) -> Authorities:
        found = self._seen(self._observed.authority)
        return Authorities.read((found or {}).get("data") or {}, self._now())

    def _signer(self) -> Authority | None:
        return self._authorities().signer(self._now())

    def _seen(self, mirror: KindCache) -> Json | None:
        return mirror.objects.get(ObjectName(self._namespace, AUTHORITY))

    def _document(self, kind: str, content: Json) -> Json:
        return _document(kind, self._namespace, AUTHORITY, content)

    def _names(self, key: SchedulerKey) -> tuple[str, ...]:
        return serving_names(key, self._explain_service if key.namespace == self._namespace else "")

    def _is_good(self, signer: Authority, key: SchedulerKey, owner: Json, found: Json) -> bool:
        data, (certificate, private) = found.get("data") or {}, serving_files(key.name)
        pair = Pair(decoded(data, certificate), decoded(data, private))
        owners = [one["uid"] for one in found["metadata"].get("ownerReferences") or ()]
        return owner["uid"] in owners and signer.vouches(pair, self._names(key), self._now())

    async def _write(
        self, mirror: KindCache, resource: Resource, wanted: Json, manager: str = FIELD_MANAGER
    ) -> None:
        """Apply an object whose name is the operator's; one that others made is left as it is."""
        metadata = wanted["metadata"]
        found = mirror.objects.get(ObjectName(metadata["namespace"], metadata["name"]))
        if found is not None and not _is_ours(found):
            raise ReservedNameError(wanted["kind"], metadata["name"])
        there = {"resourceVersion": NONE_THERE} if found is None else {"uid": found["metadata"]["uid"]}
        with about(wanted):
            answer = await apply(
                self._api, resource, {**wanted, "metadata": {**metadata, **there}}, manager=manager
            )
        mirror.note(answer)


class _OwnCertificate:
    """The operator's certificate, kept in memory: each of its processes has one of its own."""

    def __init__(self, issue: Callable[[], Pair | None], now: Callable[[], datetime]) -> None:
        self._issue = issue
        self._now = now
        self._first = SelfMade()
        self._issued: tuple[date, ssl.SSLContext] | None = None

    def __call__(self) -> ssl.SSLContext:
        """Give the context of a new connection."""
        today = self._now().date()
        if self._issued is None or self._issued[0] != today:
            pair = self._issue()
            if pair is None:
                return self._first()
            self._issued = today, context_of(*pair)
        return self._issued[1]


def _document(kind: str, namespace: str, name: str, content: Json) -> Json:
    labels = {MANAGED_BY: FIELD_MANAGER, "app.kubernetes.io/part-of": "berth"}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}


def _data(key: SchedulerKey, pair: Pair) -> dict[str, str]:
    return dict(zip(serving_files(key.name), map(encoded, pair), strict=True))


def _manager(key: SchedulerKey) -> str:
    return f"{FIELD_MANAGER}:{key.name}"


def _is_ours(found: Json) -> bool:
    return bool((found["metadata"].get("labels") or {}).get(MANAGED_BY) == FIELD_MANAGER)
