"""All that a snapshot says through its public face, by node name, so that row order does not count."""

from berth.objects.label_selector import EVERYTHING, Requirement, Selector
from berth.objects.pods.host_ports import HostPort
from berth.snapshot.placed.placed_pods import PodQuery, PodsLike

KEYS = ("zone", "disk", "gen")
IMAGES = ("app:latest", "app:1", "registry.example.com/db:2")
PORTS = tuple(
    HostPort(ip, protocol, number)
    for ip in ("0.0.0.0", "10.0.0.1", "10.0.0.2")
    for protocol in ("TCP", "UDP")
    for number in (80, 443)
)
QUESTIONS = (
    PodQuery((PodsLike(None, EVERYTHING),)),
    PodQuery((PodsLike(frozenset({"default"}), Selector((Requirement("zone", "In", ("a",)),))),)),
    PodQuery((PodsLike(None, Selector((Requirement("disk", "Exists"),))),), terminating=False),
)


def facts(snapshot):
    """What each node looks like, and what holds for all of them together."""
    terms = snapshot.placed.terms
    held = {each: terms.on_rows(each, len(snapshot)).tolist() for each in terms.held()}
    return {
        "nodes": {name: node_facts(snapshot, row) for row, name in enumerate(snapshot.names)},
        "rows": {name: snapshot.row_of[name] == row for row, name in enumerate(snapshot.names)},
        "known": set(snapshot.row_of),
        "claims": dict(snapshot.claims),
        "sizes": {i: snapshot.images.size_bytes(i) for i in IMAGES if snapshot.images.holders(i)},
        "holders": {i: snapshot.images.holders(i) for i in IMAGES},
        "terms": {
            term: {name: count for name, count in zip(snapshot.names, counts, strict=True) if count}
            for term, counts in held.items()
        },
    }


def node_facts(snapshot, row):
    """One row in words."""
    return {
        "allocatable": amounts(snapshot, snapshot.allocatable[:, row]),
        "requested": amounts(snapshot, snapshot.requested[:, row]),
        "non_zero": snapshot.non_zero_requested[:, row].tolist(),
        "pod_count": int(snapshot.pod_count[row]),
        "allowed_pods": int(snapshot.allowed_pods[row]),
        "unschedulable": bool(snapshot.unschedulable[row]),
        "taints": {t for t in snapshot.taints if snapshot.with_taint([t])[row]},
        "labels": {key: value_of(snapshot, key, row) for key in KEYS},
        "ports": [said(snapshot.port_conflicts([port]), row) for port in PORTS],
        "images": [said(snapshot.image_on(image), row) for image in IMAGES],
        "counts": [int(snapshot.placed.count(q, len(snapshot))[row]) for q in QUESTIONS],
        "pods": {uid: info.pod for uid, info in snapshot.pods[row].items()},
        "node": snapshot.nodes[row],
    }


def amounts(snapshot, column):
    """Amounts by resource, without those that are nought."""
    return {
        name: int(amount)
        for name, amount in zip(snapshot.resource_names, column, strict=True)
        if amount or name in ("cpu", "memory")
    }


def value_of(snapshot, key, row):
    """The node's value of a label."""
    number = int(snapshot.label_ids(key)[row])
    return None if number < 0 else snapshot.label(key).values[number]


def said(mask, row):
    """What a mask, or its absence, says of a row."""
    return mask is not None and bool(mask[row])
