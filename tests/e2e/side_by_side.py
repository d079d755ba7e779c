"""A small cluster, and pods that meet most of what can keep a pod from a node: for two schedulers to look at.

Nodes are named for what is odd about them.
"""

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def thing(kind, name, api_version="v1", namespace="", **fields):
    """An object of that kind."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def node(name, cpu="4", taints=(), pods="20", unschedulable=False, **labels):
    """A node, with a hostname and other labels."""
    resources = {"cpu": cpu, "memory": "8Gi", "ephemeral-storage": "20Gi", "pods": pods}
    made = thing("Node", name, spec={"taints": list(taints), "unschedulable": unschedulable})
    made["metadata"]["labels"] = {HOST: name, **labels}
    return made | {"status": {"capacity": resources, "allocatable": resources}}


def pod(name, cpu="100m", labels=None, requests=None, ports=(), **spec):
    """A pod of one container in the default namespace."""
    asked = {"requests": {"cpu": cpu, **(requests or {})}}
    container = {"name": "c", "image": "app:1", "resources": asked, "ports": list(ports)}
    made = thing("Pod", name, namespace="default", spec={"containers": [container], **spec})
    made["metadata"]["labels"] = labels or {}
    return made


def labelled(key, *values):
    """A term of node affinity."""
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def wants(*terms):
    """Required node affinity."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def near(app, key=HOST):
    """A term of pod affinity."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def spread(app, key, when="DoNotSchedule", skew=1):
    """A topology spread constraint."""
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}


def storage_class(name, mode):
    """A storage class without a provisioner."""
    fields = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode}
    return thing("StorageClass", name, "storage.k8s.io/v1", **fields)


def claim(name, storage_class_name, **spec):
    """A claim of a gibibyte."""
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    fields = {"storageClassName": storage_class_name, **asked, **spec}
    return thing("PersistentVolumeClaim", name, namespace="default", spec=fields)


def volume(name, claim_name, labels=None, modes=("ReadWriteOnce",), **spec):
    """A volume that is bound to the claim of that name."""
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim_name}
    fields = {"capacity": {"storage": "1Gi"}, "accessModes": list(modes), "storageClassName": "at-once"}
    made = thing("PersistentVolume", name, spec={**fields, "claimRef": reference, **spec})
    made["metadata"]["labels"] = labels or {}
    return made


def bound_claim(name, volume_name, **spec):
    """A claim that is bound to the volume."""
    made = claim(name, "at-once", volumeName=volume_name, **spec)
    made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    return made


DRIVER = "gpu.example.com"


def devices(on, count):
    """A slice of devices that are local to the node, of models x and y in turn."""
    made = [
        {
            "name": f"d{i}",
            "attributes": {"model": {"string": "yx"[i % 2]}},
            "capacity": {"memory": {"value": f"{i}Gi"}},
        }
        for i in range(count)
    ]
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": on, "pool": pool, "devices": made}
    return thing("ResourceSlice", f"devices-{on}", "resource.k8s.io/v1", spec=spec)


def device_claim(name, count=1, selector="", device_class="gpu", mode="ExactCount"):
    """A claim of devices of that class."""
    exactly = {"deviceClassName": device_class, "allocationMode": mode}
    if mode == "ExactCount":
        exactly["count"] = count
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    asked = {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}
    return thing("ResourceClaim", name, "resource.k8s.io/v1", "default", spec=asked)


def with_device(name):
    """A pod's resource claims: that one."""
    return [{"name": "device", "resourceClaimName": name}]


def with_claim(name):
    """A pod's volumes: that claim."""
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def surroundings():
    """Nodes, what is on them, and what pods refer to."""
    return [*priority_classes(), *storage(), *gpus(), *guarded_pods(), *nodes_and_their_pods()]


def priority_classes():
    """What pods name to be preferred, with and without preemption."""
    return [
        thing("PriorityClass", name, "scheduling.k8s.io/v1", value=value, **others)
        for name, value, others in (
            ("high", 1000, {}),
            ("polite", 1000, {"preemptionPolicy": "Never"}),
            ("low", 1, {}),
        )
    ]


def storage():
    """Classes, claims that wait, and claims that are bound to volumes."""
    return [
        storage_class("at-once", "Immediate"),
        storage_class("later", "WaitForFirstConsumer"),
        claim("unbound", "at-once"),
        claim("nowhere", "later"),
        volume(
            "at-plain-z",
            "at-plain-z",
            hostPath={"path": "/data"},
            nodeAffinity={"required": {"nodeSelectorTerms": [labelled(HOST, "plain-z")]}},
        ),
        bound_claim("at-plain-z", "at-plain-z"),
        volume("in-zone-z", "in-zone-z", {ZONE: "z"}, hostPath={"path": "/data"}),
        bound_claim("in-zone-z", "in-zone-z"),
        volume(
            "single",
            "single",
            modes=["ReadWriteOncePod"],
            csi={"driver": "csi.example.com", "volumeHandle": "s"},
        ),
        bound_claim("single", "single", accessModes=["ReadWriteOncePod"]),
    ]


def gpus():
    """A class of devices, two nodes that have some, and claims of them."""
    return [
        thing(
            "DeviceClass",
            "gpu",
            "resource.k8s.io/v1",
            spec={"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
        ),
        devices("plain-a", 2),
        devices("large", 4),
        device_claim("no-class", device_class="unheard-of"),
        device_claim("three", 3),
        device_claim("two", 2),
        device_claim("five", 5),
        device_claim("model-x", selector=f'device.attributes["{DRIVER}"].model == "x"'),
        device_claim("broken", selector=f'device.attributes["{DRIVER}"].nothing == "x"'),
        device_claim(
            "large-one", selector=f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("2Gi"))'
        ),
        device_claim("all", mode="All"),
        device_claim("last"),
    ]


def guarded_pods():
    """Two nodes, on one of which a disruption budget protects what could be evicted."""
    return [
        thing(
            "PodDisruptionBudget",
            "guard",
            "policy/v1",
            "default",
            spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
        ),
        node("guarded-a", cpu="2", pool="guarded"),
        node("guarded-b", cpu="2", pool="guarded"),
        pod(
            "lowly-guarded", "1500m", nodeName="guarded-a", priorityClassName="low", labels={"app": "guarded"}
        ),
        pod("lowly-free", "1900m", nodeName="guarded-b", priorityClassName="low"),
    ]


def nodes_and_their_pods():
    """A node of each kind, and pods of low priority."""
    return [
        node("plain-a", **{ZONE: "a"}),
        node("plain-b", **{ZONE: "b"}),
        node("large", cpu="16", **{ZONE: "a", "size": "large"}),
        node("tainted", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}], **{ZONE: "b"}),
        node("leaving", taints=[{"key": "gone", "effect": "NoExecute"}], **{ZONE: "b"}),
        node("cordoned", unschedulable=True, **{ZONE: "b"}),
        node("full", pods="1"),
        pod("there", nodeName="full", labels={"app": "there"}),
        pod("lowly-1", "3", nodeName="plain-a", priorityClassName="low", labels={"app": "lowly"}),
        pod("lowly-2", "3", nodeName="plain-b", priorityClassName="low", labels={"app": "lowly"}),
    ]


LARGE = {"size": "large"}

# In turn: each is decided on before the next is there.
PODS = (
    pod("fits-large", "9"),
    pod("too-much-cpu", "64"),
    pod("too-much-memory", requests={"memory": "9Gi"}),
    pod("too-much-of-all", "64", requests={"memory": "64Gi", "ephemeral-storage": "1Ti"}),
    pod("unknown-resource", requests={"example.com/thing": "1"}),
    pod("selects-nothing", nodeSelector={"disk": "ssd"}),
    pod("selects-and-too-much", "12", nodeSelector=LARGE),
    pod("no-term-matches", affinity=wants(labelled("disk", "ssd"), labelled(ZONE, "z"))),
    pod("wants-tainted", nodeSelector={HOST: "tainted"}),
    pod("wants-leaving", nodeSelector={HOST: "leaving"}),
    pod("wants-cordoned", nodeSelector={HOST: "cordoned"}),
    pod("wants-full", nodeSelector={HOST: "full"}),
    pod(
        "tolerates", tolerations=[{"key": "dedicated", "operator": "Exists"}], nodeSelector={HOST: "tainted"}
    ),
    pod("takes-port", ports=[{"containerPort": 80, "hostPort": 8080}], nodeSelector=LARGE),
    pod("port-in-use", ports=[{"containerPort": 80, "hostPort": 8080}], nodeSelector=LARGE),
    pod("near-no-pod", affinity={"podAffinity": {REQUIRED: [near("no-app")]}}),
    pod("near-there", affinity={"podAffinity": {REQUIRED: [near("there")]}}),
    pod("alone", labels={"app": "alone"}, affinity={"podAntiAffinity": {REQUIRED: [near("alone", ZONE)]}}),
    pod(
        "alone-too", labels={"app": "alone"}, affinity={"podAntiAffinity": {REQUIRED: [near("alone", ZONE)]}}
    ),
    pod(
        "alone-again",
        labels={"app": "alone"},
        affinity={"podAntiAffinity": {REQUIRED: [near("alone", ZONE)]}},
    ),
    pod(
        "disturbs",
        labels={"app": "alone"},
        affinity={"podAntiAffinity": {REQUIRED: [near("lowly")]}, **wants(labelled(HOST, "plain-a"))},
    ),
    pod("spread-1", labels={"app": "s"}, topologySpreadConstraints=[spread("s", HOST)], nodeSelector=LARGE),
    pod("spread-2", labels={"app": "s"}, topologySpreadConstraints=[spread("s", HOST)], nodeSelector=LARGE),
    pod(
        "spread-3",
        labels={"app": "s"},
        topologySpreadConstraints=[spread("s", ZONE)],
        nodeSelector={ZONE: "a"},
    ),
    pod(
        "spread-over-racks",
        labels={"app": "s"},
        topologySpreadConstraints=[spread("s", "rack"), spread("s", ZONE, "ScheduleAnyway")],
    ),
    pod("missing-claim", volumes=with_claim("missing")),
    pod("unbound-claim", volumes=with_claim("unbound")),
    pod("claim-nowhere", volumes=with_claim("nowhere")),
    pod("missing-device", resourceClaims=with_device("missing")),
    pod("claim-on-no-node", volumes=with_claim("at-plain-z")),
    pod("claim-in-zone-z", volumes=with_claim("in-zone-z")),
    pod("only-one", volumes=with_claim("single"), nodeSelector={HOST: "large"}),
    pod("only-one-more", volumes=with_claim("single"), nodeSelector={HOST: "large"}),
    *(
        pod(f"device-{name}", resourceClaims=with_device(name))
        for name in ("three", "five", "broken", "two", "large-one", "model-x", "all")
    ),
    pod("device-last", resourceClaims=with_device("last")),
    pod("device-shared", resourceClaims=with_device("three")),
    pod("no-such-device", resourceClaims=with_device("no-class")),
    pod(
        "far-from-its-version",
        labels={"app": "v", "version": "1"},
        nodeSelector=LARGE,
        topologySpreadConstraints=[{**spread("v", HOST), "matchLabelKeys": ["version"], "minDomains": 5}],
    ),
    pod(
        "other-namespaces",
        affinity={
            "podAffinity": {REQUIRED: [{**near("there"), "namespaceSelector": {"matchLabels": {"a": "b"}}}]}
        },
    ),
    pod("past-the-budget", "1500m", priorityClassName="high", nodeSelector={"pool": "guarded"}),
    pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
    pod("too-polite", "3500m", priorityClassName="polite", nodeSelector={ZONE: "b"}),
    pod("important", "3500m", priorityClassName="high", nodeSelector={ZONE: "b"}),
    pod("important-on-one-node", "3500m", priorityClassName="high", nodeSelector={HOST: "plain-a"}),
    pod("too-important-for-room", "20", priorityClassName="high"),
    pod("after-all", requests={"memory": "1Gi"}),
    pod("for-another-scheduler", schedulerName="another"),
)
