"""Nodes: sizes, labels, taints, images, and what they offer."""

from tests.chance.draw import DISKS, HOST, NUMBERS, RACKS, REGION, ZONE, ZONES, thing

MIB = 1024**2
# Of an image with several sizes, a scheduler takes the one that it sees first: so each has one.
IMAGES = {
    ("docker.io/library/web:1", "docker.io/library/web@sha256:" + "a" * 64): 60,
    ("db:latest",): 300,
    ("registry.example.com/cache:2",): 900,
    ("sidecar:1",): 1500,
}
IMAGE_NAMES = (
    "docker.io/library/web:1",
    "db",
    "db:latest",
    "registry.example.com/cache:2",
    "sidecar:1",
    "new",
)
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TAINT_KEYS, TAINT_VALUES = ("dedicated", "slow", "gone"), ("", "x", "5")


def nodes(chance, mix, count):
    """So many nodes, called n0, n1 and so on."""
    return [_node(chance, mix, f"n{i}") for i in range(count)]


def _node(chance, mix, name):
    made = thing("Node", name, spec={"taints": _taints(chance, mix)})
    made["metadata"]["labels"] = _labels(chance, name)
    if chance.maybe(mix["unschedulable"]):
        made["spec"]["unschedulable"] = True
        made["spec"]["taints"].append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    offered = _offered(chance)
    made["status"] = {"capacity": offered, "allocatable": offered, "images": _images(chance)}
    return made


def _labels(chance, name):
    labels = {HOST: name, "cores": chance.choice(NUMBERS), "disk": chance.choice(DISKS)}
    if chance.maybe(0.9):
        labels |= {ZONE: chance.choice(ZONES), REGION: chance.choice(("west", "east"))}
    if chance.maybe(0.7):
        labels["rack"] = chance.choice(RACKS)
    for key in chance.some(("cores", "disk"), 0, 1) * chance.maybe(0.3):
        del labels[key]
    if chance.maybe(0.03):
        del labels[HOST]
    return labels


def _taints(chance, mix):
    """Taints; no two of them of one key and effect, as the API wants it."""
    if not chance.maybe(mix["taints"]):
        return []
    drawn = {
        (chance.choice(TAINT_KEYS), chance.choice(EFFECTS)): chance.choice(TAINT_VALUES)
        for _ in range(chance.randint(1, 3))
    }
    return [{"key": key, "effect": effect, "value": value} for (key, effect), value in drawn.items()]


def _offered(chance):
    offered = {
        "cpu": chance.choice(("2", "4", "3900m", "8")),
        "memory": chance.choice(("4Gi", "8Gi", "7900Mi", "16000000Ki")),
        "ephemeral-storage": chance.choice(("10Gi", "20Gi", "100G")),
        "pods": chance.choice(("8", "12", "110")),
    }
    if chance.maybe(0.5):
        offered["example.com/gpu"] = chance.choice(("0", "1", "4"))
    if chance.maybe(0.3):
        offered["hugepages-2Mi"] = chance.choice(("64Mi", "256Mi"))
    return offered


def _images(chance):
    return [
        {"names": list(names), "sizeBytes": size * MIB} for names, size in IMAGES.items() if chance.maybe(0.4)
    ]
