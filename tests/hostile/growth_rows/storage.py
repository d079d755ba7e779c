"""Volumes: claims that users write, and what administrators and CSI drivers say of storage."""

from berth.objects.label_selector import MAX_VALUES
from tests.hostile.growth_rows.row import OBJECTS, lists_of_a_term, of_objects, thing
from tests.hostile.growth_rows.selectors import BOUNDED

CLAIMED = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
STORAGE = "storage.k8s.io/v1"
DRIVER = "disk.example.com"
WAITS = "WaitForFirstConsumer"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def exists(n):
    return [{"key": f"k{i}", "operator": "Exists"} for i in range(n)]


def claim(*, bound=False, annotations=None, **spec):
    wanted = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
        **({"volumeName": "pv"} if bound else {}),
        **spec,
    }
    made = thing("v1", "PersistentVolumeClaim", "data", spec=wanted)
    made["metadata"]["annotations"] = {**(BOUND if bound else {}), **(annotations or {})}
    return made


def volume(name="pv", terms=(), **spec):
    offered = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "fast",
        "csi": {"driver": DRIVER, "volumeHandle": name},
        **({"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}),
        **spec,
    }
    made = thing("v1", "PersistentVolume", name, spec=offered, status={"phase": "Available"})
    del made["metadata"]["namespace"]
    return made


def storage_class(**more):
    made = thing(STORAGE, "StorageClass", "fast", volumeBindingMode=WAITS, provisioner=DRIVER, **more)
    del made["metadata"]["namespace"]
    return made


def csi_node(drivers, annotations=None):
    made = thing(STORAGE, "CSINode", "node-0", spec={"drivers": drivers})
    del made["metadata"]["namespace"]
    made["metadata"]["annotations"] = annotations or {}
    return made


def driver(name=DRIVER, **more):
    return {"name": name, "nodeID": "n", "allocatable": {"count": 8}, **more}


def cluster_wide(api_version, kind, name, **fields):
    """An object of no namespace."""
    made = thing(api_version, kind, name, **fields)
    del made["metadata"]["namespace"]
    return made


def of_everything(i):
    """One object of each kind of which a claim concerns one by name."""
    other = claim()
    other["metadata"] |= {"name": f"other{i}", "uid": f"other{i}"}
    node = cluster_wide(STORAGE, "CSINode", f"node-{i}", spec={"drivers": [driver()]})
    kept = cluster_wide(STORAGE, "CSIDriver", f"d{i}.example.com", spec={"storageCapacity": True})
    return [other, node, kept, cluster_wide(STORAGE, "StorageClass", f"class{i}", provisioner=DRIVER)]


def capacity(name, **more):
    return thing(STORAGE, "CSIStorageCapacity", name, storageClassName="fast", capacity="2Gi", **more)


def csi_driver():
    made = thing(STORAGE, "CSIDriver", DRIVER, spec={"storageCapacity": True})
    del made["metadata"]["namespace"]
    return made


def attachment(number):
    source = {"persistentVolumeName": f"pv{number}"}
    made = thing(STORAGE, "VolumeAttachment", f"a{number}")
    made["spec"] = {"attacher": DRIVER, "nodeName": "node-0", "source": source}
    del made["metadata"]["namespace"]
    return made


def of_storage(kind, field, documents, max_entries=None):
    """A row beside a pod with one claim."""
    return of_objects(kind, field, documents, max_entries=max_entries, **CLAIMED)


CLAIMS = {
    "accessModes": lambda n: claim(accessModes=["ReadWriteOnce"] * n),
    "annotations": lambda n: claim(annotations={f"k{i}": "v" for i in range(n)}),
    "matchLabels": lambda n: claim(selector={"matchLabels": {f"k{i}": "v" for i in range(n)}}),
    "matchExpressions": lambda n: claim(selector={"matchExpressions": exists(n)}),
    "values of an expression": lambda n: claim(
        selector={"matchExpressions": [{"key": "k", "operator": "In", "values": [f"v{i}" for i in range(n)]}]}
    ),
    "requests": lambda n: claim(
        resources={"requests": {"storage": "1Gi", **{f"example.com/r{i}": "1" for i in range(n)}}}
    ),
}
VOLUMES = {
    "terms": lambda n: volume(terms=[{"matchExpressions": [each]} for each in exists(n)]),
    "expressions of a term": lambda n: volume(terms=[{"matchExpressions": exists(n)}]),
    "values of an expression": lambda n: volume(
        terms=[
            {
                "matchExpressions": [
                    {
                        "key": "kubernetes.io/hostname",
                        "operator": "In",
                        "values": [f"node-{i}" for i in range(n)],
                    }
                ]
            }
        ]
    ),
    "lists of a term": lambda n: volume(terms=lists_of_a_term(n)),
    "labels": lambda n: labelled(volume(), {f"k{i}": "v" for i in range(n)}),
    "zones of a label": lambda n: labelled(
        volume(), {"topology.kubernetes.io/zone": "__".join(f"zone-{i}" for i in range(n))}
    ),
    "capacity": lambda n: volume(capacity={"storage": "1Gi", **{f"example.com/r{i}": "1" for i in range(n)}}),
    "accessModes": lambda n: volume(accessModes=["ReadWriteOnce"] * n),
}
BINDINGS = {"of a claim that waits": False, "of a bound claim": True}


def labelled(made, labels):
    made["metadata"]["labels"] = labels
    return made


def topologies(terms, expressions, values):
    return [
        {
            "matchLabelExpressions": [
                {"key": f"k{i}-{j}", "values": [f"v{k}" for k in range(values)]} for j in range(expressions)
            ]
        }
        for i in range(terms)
    ]


ROWS = [
    *(
        of_storage(
            "PersistentVolumeClaim",
            field,
            lambda n, shape=shape: [storage_class(), volume(), shape(n)],
            BOUNDED.get(field),
        )
        for field, shape in CLAIMS.items()
    ),
    *(
        of_storage(
            "PersistentVolume",
            f"{field}, {how}",
            lambda n, shape=shape, bound=bound: [storage_class(), shape(n), claim(bound=bound)],
        )
        for field, shape in VOLUMES.items()
        for how, bound in BINDINGS.items()
    ),
    of_storage(
        "PersistentVolume",
        "objects",
        lambda n: [storage_class(), claim(), *(volume(f"pv{i}") for i in range(n))],
        OBJECTS,
    ),
    of_storage(
        "StorageClass",
        "allowedTopologies",
        lambda n: [storage_class(allowedTopologies=topologies(n, 1, 1)), claim()],
    ),
    of_storage(
        "StorageClass",
        "expressions of a topology",
        lambda n: [storage_class(allowedTopologies=topologies(1, n, 1)), claim()],
    ),
    of_storage(
        "StorageClass",
        "values of a topology",
        lambda n: [storage_class(allowedTopologies=topologies(1, 1, n)), claim()],
    ),
    of_storage(
        "CSINode",
        "drivers",
        lambda n: [
            storage_class(),
            volume(),
            claim(bound=True),
            csi_node([driver(f"d{i}") for i in range(n)]),
        ],
    ),
    of_storage(
        "CSINode",
        "topologyKeys",
        lambda n: [
            storage_class(),
            volume(),
            claim(bound=True),
            csi_node([driver(topologyKeys=[f"k{i}" for i in range(n)])]),
        ],
    ),
    of_storage(
        "CSINode",
        "migrated plugins",
        lambda n: [
            storage_class(),
            volume(),
            claim(bound=True),
            csi_node(
                [driver()],
                {"storage.alpha.kubernetes.io/migrated-plugins": ",".join(f"p{i}" for i in range(n))},
            ),
        ],
    ),
    of_storage(
        "CSIStorageCapacity",
        "matchLabels",
        lambda n: [
            storage_class(),
            csi_driver(),
            claim(),
            capacity("c", nodeTopology={"matchLabels": {f"k{i}": "v" for i in range(n)}}),
        ],
        MAX_VALUES,
    ),
    of_storage(
        "CSIStorageCapacity",
        "matchExpressions",
        lambda n: [
            storage_class(),
            csi_driver(),
            claim(),
            capacity("c", nodeTopology={"matchExpressions": exists(n)}),
        ],
        MAX_VALUES,
    ),
    of_storage(
        "CSIStorageCapacity",
        "values of an expression",
        lambda n: [
            storage_class(),
            csi_driver(),
            claim(),
            capacity("c", nodeTopology=CLAIMS["values of an expression"](n)["spec"]["selector"]),
        ],
        MAX_VALUES,
    ),
    of_storage(
        "PersistentVolumeClaim",
        "objects, and their classes, drivers and CSINodes",
        lambda n: [storage_class(), claim(), *(each for i in range(n) for each in of_everything(i))],
        OBJECTS,
    ),
    of_storage(
        "CSIStorageCapacity",
        "objects",
        lambda n: [
            storage_class(),
            csi_driver(),
            claim(),
            *(capacity(f"c{i}", nodeTopology={"matchLabels": {"zone": f"z{i}"}}) for i in range(n)),
        ],
        OBJECTS,
    ),
    of_storage(
        "VolumeAttachment",
        "objects",
        lambda n: [
            storage_class(),
            volume(),
            claim(bound=True),
            csi_node([driver()]),
            *(attachment(i) for i in range(n)),
        ],
        OBJECTS,
    ),
]
