"""Lists and watches: selectors, pages, and where a watch begins.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go, pkg/storage/{continue,errors}.go (v1.36).
"""

import base64
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from berth.objects.selector_text import SelectorError, parse_field_selector, parse_label_selector
from berth.sandbox.errors import ApiError
from berth.sandbox.kinds.resource import ServedResource
from berth.sandbox.reading.views import ObjectView
from berth.sandbox.reading.watch import Matches, Watch
from berth.sandbox.request import JSON, CompleteAnswer, ReceivedRequest
from berth.sandbox.store import Collection, Compacted, Json, SandboxStore, StoredObject, encode
from berth.snapshot.bounded_cache import BoundedCache

_PAGE_GONE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter."
)
_MAX_OPEN_LISTS: Final = 64
_DEFAULT_WATCH_SECONDS: Final = 1800.0


class Lists:
    """Answers lists; keeps what is left of those that are read page by page."""

    def __init__(self, store: SandboxStore) -> None:
        self._store = store
        # Entries never change, so the rest of a list at its revision is a list of references.
        self._open: BoundedCache[str, tuple[int, list[StoredObject]]] = BoundedCache(
            max_entries=_MAX_OPEN_LISTS
        )

    def answer_list(
        self, request: ReceivedRequest, resource: ServedResource, namespace: str, view: ObjectView
    ) -> CompleteAnswer:
        """Answer a list request.

        Raises: ApiError when a selector, revision or continue token cannot be served.
        """
        limit = _integer(request, "limit")
        token = request.query.get("continue", "")
        if token:
            revision, entries = self._resume(token)
        else:
            revision = self._store.revision
            self._check_revision(request, revision)
            entries = select(request, self._store.collection(resource.store_name), resource, namespace)
        metadata: Json = {"resourceVersion": str(revision)}
        if limit and len(entries) > limit:
            metadata["continue"] = self._keep(revision, entries[limit:])
            metadata["remainingItemCount"] = len(entries) - limit
            entries = entries[:limit]
        return CompleteAnswer(200, view.many(entries, metadata), JSON)

    def answer_watch(
        self, request: ReceivedRequest, resource: ServedResource, namespace: str, view: ObjectView
    ) -> Watch:
        """Answer a watch request.

        Raises: ApiError when a selector or revision cannot be served.
        """
        collection = self._store.collection(resource.store_name)
        watch = Watch(
            self._store,
            collection,
            resource,
            matcher(request, resource, namespace),
            render=view.one,
            bookmarks=request.flag("allowWatchBookmarks"),
            timeout_seconds=_integer(request, "timeoutSeconds") or _DEFAULT_WATCH_SECONDS,
        )
        revision = _revision(request)
        initial = request.query.get("sendInitialEvents")
        if initial == "true" or (initial is None and not revision):
            self._check_known(revision)
            wanted = request.flag("sendInitialEvents") and request.flag("allowWatchBookmarks")
            watch.start_with(select(request, collection, resource, namespace), bookmark=wanted)
        elif revision:
            self._check_known(revision)
            try:
                watch.start_after(revision)
            except Compacted as gone:
                text = f"too old resource version: {revision} ({gone.oldest})"
                raise ApiError.expired(text) from None
        return watch

    def _check_revision(self, request: ReceivedRequest, current: int) -> None:
        wanted = _revision(request)
        self._check_known(wanted)
        if request.query.get("resourceVersionMatch") == "Exact" and wanted != current:
            raise ApiError.expired(
                f"The resourceVersion for the provided list is too old: {wanted} ({current})"
            )

    def _check_known(self, wanted: int) -> None:
        if wanted > self._store.revision:
            raise ApiError.too_large_resource_version(wanted, self._store.revision)

    def _keep(self, revision: int, rest: list[StoredObject]) -> str:
        handle = secrets.token_urlsafe(12)
        self._open.put(handle, (revision, rest))
        return base64.urlsafe_b64encode(
            encode({"v": "meta.k8s.io/v1", "rv": revision, "start": handle})
        ).decode()

    def _resume(self, token: str) -> tuple[int, list[StoredObject]]:
        try:
            handle = msgspec.json.decode(base64.urlsafe_b64decode(token))["start"]
        except (ValueError, KeyError, TypeError):
            raise ApiError.bad_request("continue key is not valid: the token is malformed") from None
        if (page := self._open.peek(handle)) is None:
            raise ApiError.expired(_PAGE_GONE)
        return page


def select(
    request: ReceivedRequest, collection: Collection, resource: ServedResource, namespace: str
) -> list[StoredObject]:
    """Give the stored objects that the request selects, in the order of their keys."""
    entries = collection.entries(f"{namespace}/" if namespace else "")
    chosen = selector_test(request, resource)
    return entries if chosen is None else [entry for entry in entries if chosen(entry)]


def matcher(request: ReceivedRequest, resource: ServedResource, namespace: str) -> Matches | None:
    """Give the test that a watch puts each object to, or None when all pass."""
    chosen = selector_test(request, resource)
    if not namespace:
        return chosen
    prefix = f"{namespace}/"
    if chosen is None:
        return lambda entry: entry.key.startswith(prefix)
    return lambda entry: entry.key.startswith(prefix) and chosen(entry)


def selector_test(
    request: ReceivedRequest, resource: ServedResource
) -> Callable[[StoredObject], bool] | None:
    """Give the test made of the request's label and field selectors, or None without any.

    Raises: ApiError when they cannot be parsed, or name a field that cannot be selected by.
    """
    label_text = request.query.get("labelSelector", "")
    field_text = request.query.get("fieldSelector", "")
    if not label_text and not field_text:
        return None
    try:
        label_tests = parse_label_selector(label_text)
        field_tests = parse_field_selector(field_text)
    except SelectorError as error:
        raise ApiError.bad_request(str(error)) from None
    _check_fields(resource, label_text, field_text, [field for field, _, _ in field_tests])

    readers = [(resource.field_reader(field), value, equal) for field, value, equal in field_tests]

    def chosen(entry: StoredObject) -> bool:
        seen = resource.selectable(entry)
        labels = seen.metadata.labels or {}
        return all((read(seen) == value) == equal for read, value, equal in readers) and all(
            test(labels) for test in label_tests
        )

    return chosen


def _check_fields(resource: ServedResource, label_text: str, field_text: str, fields: list[str]) -> None:
    known = {label for label, _ in resource.field_paths}
    for field in fields:
        if field not in known:
            group_version = f"{resource.group}/{resource.version}"
            raise ApiError.bad_request(
                f'Unable to find "{group_version}, Resource={resource.plural}" that match label selector '
                f'"{label_text}", field selector "{field_text}": field label not supported: {field}'
            )


def _integer(request: ReceivedRequest, name: str) -> int:
    text = request.query.get(name, "")
    try:
        return max(0, int(text or 0))
    except ValueError:
        raise ApiError.bad_request(f"invalid {name}: {text!r} is no integer") from None


def _revision(request: ReceivedRequest) -> int:
    text = request.query.get("resourceVersion", "")
    try:
        return int(text or 0)
    except ValueError:
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiError.bad_request(why) from None
