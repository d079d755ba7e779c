"""What a plugin does and needs, read off its class."""

import msgspec
from google.protobuf.duration_pb2 import Duration

from berth_plugin_proto import identity_pb2 as pb
from berth_sdk.arguments import schema_of
from berth_sdk.plugin import EventInterest, Plugin, awaits, overrides

METHODS = {
    pb.EXTENSION_POINT_PRE_ENQUEUE: ("pre_enqueue",),
    pb.EXTENSION_POINT_FILTER: ("pre_filter", "filter", "filter_nodes"),
    pb.EXTENSION_POINT_FILTER_OVERLAYS: ("filter", "filter_nodes"),
    pb.EXTENSION_POINT_POST_FILTER: ("post_filter",),
    pb.EXTENSION_POINT_SCORE: ("score", "score_nodes"),
    pb.EXTENSION_POINT_RESERVE: ("reserve", "unreserve"),
    pb.EXTENSION_POINT_PERMIT: ("permit",),
    pb.EXTENSION_POINT_PRE_BIND: ("pre_bind",),
    pb.EXTENSION_POINT_BIND: ("bind",),
    pb.EXTENSION_POINT_POST_BIND: ("post_bind",),
    pb.EXTENSION_POINT_CYCLE_DONE: ("cycle_done",),
    pb.EXTENSION_POINT_QUEUEING_HINTS: ("queueing_hint", "queueing_hints"),
    pb.EXTENSION_POINT_QUEUE_SORT: ("sort_key",),
    pb.EXTENSION_POINT_PLACEMENT_GENERATE: ("generate_placements",),
    pb.EXTENSION_POINT_PLACEMENT_SCORE: ("score_placements",),
    pb.EXTENSION_POINT_PLACEMENT_FEASIBLE: ("placement_feasible",),
    pb.EXTENSION_POINT_POD_GROUP_POST_FILTER: ("pod_group_post_filter",),
}
"""Which methods make which extension point; Requeue is always served."""


def capabilities(plugin: Plugin) -> pb.Capabilities:
    """Return the announcement."""
    points = [point for point, methods in METHODS.items() if overrides(plugin, *methods)]
    if awaits(plugin, "filter_nodes"):
        points.remove(pb.EXTENSION_POINT_FILTER_OVERLAYS)
    asks = overrides(plugin, "queueing_hint", "queueing_hints")
    return pb.Capabilities(
        extension_points=[*points, pb.EXTENSION_POINT_REQUEUE],
        events=[_event(each, ask_hint=asks) for each in plugin.events],
        pod_fields=None if plugin.pod_fields is None else pb.PodFields(paths=plugin.pod_fields),
        state=pb.StateInterest(
            nodes=True,
            pods=plugin.wants_pods,
            pods_without_status=plugin.pods_without_status,
            nominations=plugin.wants_nominations,
            pod_resources=plugin.pod_resources,
            resources=[
                pb.WatchedResource(
                    group=each.group,
                    version=each.version,
                    resource=each.resource,
                    label_selector=each.label_selector,
                )
                for each in plugin.watches
            ],
        ),
        node_local=plugin.node_local,
        score_needs_feasible=plugin.score_needs_feasible,
        arguments_schema=_schema(plugin),
        wanted_deadline=_duration(plugin.wanted_deadline_seconds),
        clock=plugin.uses_clock,
        converse=True,
        converse_together=True,
        listed_candidates=overrides(
            plugin, *METHODS[pb.EXTENSION_POINT_FILTER], *METHODS[pb.EXTENSION_POINT_SCORE]
        ),
        wanted_deadlines=[
            pb.WantedDeadline(extension_point=_point(method), deadline=_duration(seconds))
            for method, seconds in plugin.wanted_deadlines_seconds.items()
        ],
    )


def _point(method: str) -> pb.ExtensionPoint.ValueType:
    """Return the extension point that a method belongs to.

    Raises: ValueError: it belongs to none.
    """
    for point, methods in METHODS.items():
        if method in methods:
            return point
    raise ValueError(f"wanted_deadlines_seconds: no extension point has a method {method!r}")


def _event(interest: EventInterest, *, ask_hint: bool) -> pb.EventInterest:
    return pb.EventInterest(
        resource=interest.resource,
        actions=[action.value for action in interest.actions],
        changed_fields=interest.changed_fields,
        label_selector=interest.label_selector,
        pod_resources=interest.pod_resources,
        ask_hint=ask_hint if interest.ask_hint is None else interest.ask_hint,
        same_namespace=interest.same_namespace,
        equal_labels=interest.equal_labels,
        pod_label_names_object=interest.pod_label_names_object,
    )


def _duration(seconds: float | None) -> Duration | None:
    return None if seconds is None else Duration(nanos=int(seconds % 1 * 1e9), seconds=int(seconds))


def _schema(plugin: Plugin) -> bytes | None:
    schema = plugin.arguments_schema if plugin.arguments is None else schema_of(plugin.arguments)
    return None if schema is None else msgspec.json.encode(schema)
