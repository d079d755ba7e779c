"""Volumes: bound claims, claims that wait for their pod, disks of nodes, limits of attachments."""

from tests.chance.draw import HOST, REGION, ZONE, ZONES, thing
from tests.e2e.side_by_side import labelled

DRIVER, LIMITED, CLAIMS = "csi.example.com", "limited.example.com", 40
SIZES = ("1Gi", "3Gi", "5Gi")
MODES = (["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOncePod"])
STORAGE = "storage.k8s.io/v1"
FORMS = ("bound", "bound", "later", "later", "made", "made-in-zones", "made-where-room", "unbound")


def storage(chance, names):
    """Classes, drivers and their limits, volumes, and claims; `names` are the nodes there are."""
    made = [*_classes(), *_drivers(chance, names)]
    for i in range(CLAIMS):
        made += _claim(chance, f"v{i}", names)
    made += [_free_volume(chance, f"free-{i}", names) for i in range(CLAIMS // 2)]
    return made


def of_pod(chance, mix):
    """A pod's volumes: claims, or disks that only one pod may use."""
    if not chance.maybe(mix["volumes"]):
        return {}
    drawn = chance.sample(range(CLAIMS), chance.choice((1, 1, 2)))
    made = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"v{i}"}} for i in drawn]
    if chance.maybe(0.3):
        made.append({"name": "disk", **_disk(chance)})
    return {"volumes": made}


def _disk(chance):
    name, read_only = chance.choice(("d1", "d2")), chance.maybe(0.5)
    return chance.choice(
        (
            {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}},
            {
                "iscsi": {
                    "targetPortal": "10.0.0.1",
                    "iqn": f"iqn.2001-04.com.example:{name}",
                    "lun": 0,
                    "readOnly": read_only,
                }
            },
            {"rbd": {"monitors": ["a", "b"], "image": name, "pool": "p", "readOnly": read_only}},
        )
    )


def _classes():
    def storage_class(name, provisioner, mode, **fields):
        return thing("StorageClass", name, STORAGE, provisioner=provisioner, volumeBindingMode=mode, **fields)

    none, later = "kubernetes.io/no-provisioner", "WaitForFirstConsumer"
    in_zones = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]}
    return [
        storage_class("at-once", none, "Immediate"),
        storage_class("later", none, later),
        storage_class("made", DRIVER, later),
        storage_class("made-in-zones", DRIVER, later, **in_zones),
        storage_class("made-where-room", LIMITED, later),
    ]


def _drivers(chance, names):
    made = [
        thing("CSIDriver", DRIVER, STORAGE, spec={"storageCapacity": False}),
        thing("CSIDriver", LIMITED, STORAGE, spec={"storageCapacity": True}),
    ]
    for name in names:
        drivers = [
            {"name": driver, "nodeID": name, "allocatable": {"count": chance.choice((1, 2, 5))}}
            for driver in (DRIVER, LIMITED, "ebs.csi.aws.com")
            if chance.maybe(0.7)
        ]
        if chance.maybe(0.9):
            made.append(thing("CSINode", name, STORAGE, spec={"drivers": drivers}))
    for zone in ZONES:
        room = {"capacity": chance.choice(("0", "2Gi", "10Gi")), "storageClassName": "made-where-room"}
        room["nodeTopology"] = {"matchLabels": {ZONE: zone}}
        made.append(thing("CSIStorageCapacity", f"room-{zone}", STORAGE, "default", **room))
    return made


def _claim(chance, name, names):
    form, modes, size = chance.choice(FORMS), chance.choice(MODES), chance.choice(SIZES)
    spec = {"accessModes": modes, "resources": {"requests": {"storage": size}}, "volumeMode": "Filesystem"}
    spec["storageClassName"] = {"bound": "at-once", "unbound": "at-once"}.get(form, form)
    claim = thing("PersistentVolumeClaim", name, namespace="default", spec=spec)
    if form == "later" and chance.maybe(0.3):
        spec["selector"] = {"matchLabels": {"tier": chance.choice(("gold", "silver"))}}
    if form != "bound":
        return [claim]
    spec["volumeName"] = f"of-{name}"
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    volume = _volume(chance, f"of-{name}", "at-once", modes, names)
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}
    volume["spec"]["claimRef"] = reference
    return [claim, volume]


def _free_volume(chance, name, names):
    volume = _volume(chance, name, "later", chance.choice(MODES), names)
    volume["metadata"]["labels"]["tier"] = chance.choice(("gold", "silver"))
    return volume


def _volume(chance, name, storage_class, modes, names):
    spec = {
        "capacity": {"storage": chance.choice(SIZES)},
        "accessModes": modes,
        "storageClassName": storage_class,
        "volumeMode": "Filesystem",
        "persistentVolumeReclaimPolicy": "Retain",
    }
    volume = thing("PersistentVolume", name, spec=spec)
    spec |= chance.choice(
        (
            {"hostPath": {"path": "/data"}},
            {"csi": {"driver": DRIVER, "volumeHandle": name}},
            {"csi": {"driver": LIMITED, "volumeHandle": name}},
            {"awsElasticBlockStore": {"volumeID": f"vol-{name}"}},
        )
    )
    terms = chance.choice(
        (
            None,
            [labelled(ZONE, *chance.some(ZONES, 1, 2))],
            [labelled(HOST, *chance.some(names, 1, 4)), labelled("disk", "ssd")],
        )
    )
    if terms:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if chance.maybe(0.3):
        volume["metadata"]["labels"][ZONE] = chance.choice((*ZONES, "a__b", "b__c"))
    if chance.maybe(0.1):
        volume["metadata"]["labels"][REGION] = "west"
    return volume
