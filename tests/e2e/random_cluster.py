"""Nodes and pods drawn by chance, with what makes a decision hard: affinity, spreading, taints, ports."""

from tests.e2e.side_by_side import HOST, PREFERRED, REQUIRED, ZONE, labelled, near, node, pod, spread, wants

ZONES, DISKS = "abc", ("ssd", "hdd", "none")
# MiB of each app's image. Of an image with several sizes, a scheduler takes the one that it sees first.
APPS = {"web": 60, "db": 300, "cache": 900}
TAINTS = (
    {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
    {"key": "slow", "value": "", "effect": "PreferNoSchedule"},
)


def nodes(chance, count):
    """Nodes of several sizes in three zones, some tainted, some with images."""
    made = []
    for i in range(count):
        taints = [taint for taint in TAINTS if chance.random() < 0.2]
        labels = {ZONE: chance.choice(ZONES), "disk": chance.choice(DISKS)}
        new = node(f"n{i}", cpu=chance.choice(("2", "4", "8")), taints=taints, pods="12", **labels)
        new["status"]["images"] = [
            {"names": [f"{app}:1"], "sizeBytes": size * 1024**2}
            for app, size in APPS.items()
            if chance.random() < 0.4
        ]
        made.append(new)
    return made


def pods(chance, count):
    """Pods of a few apps, each with some of the constraints and preferences that pods have."""
    return [_pod(chance, f"p{i}") for i in range(count)]


def _pod(chance, name):
    app = chance.choice(tuple(APPS))
    made = pod(name, chance.choice(("50m", "300m", "900m")), {"app": app}, {"memory": "256Mi"})
    spec = made["spec"]
    spec["containers"][0]["image"] = f"{app}:1"
    if chance.random() < 0.3:
        spec["tolerations"] = [{"key": chance.choice(("dedicated", "slow")), "operator": "Exists"}]
    if chance.random() < 0.3:
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": chance.choice((8080, 8081))}]
    if chance.random() < 0.5:
        spec["topologySpreadConstraints"] = [_spread(chance, app)]
    if chance.random() < 0.6:
        spec["affinity"] = _affinity(chance, app)
    return made


def _spread(chance, app):
    when = chance.choice(("DoNotSchedule", "ScheduleAnyway"))
    return spread(app, chance.choice((HOST, ZONE)), when, chance.choice((1, 2)))


def _affinity(chance, app):
    other, key, weight = chance.choice(tuple(APPS)), chance.choice((HOST, ZONE)), chance.randint(1, 100)
    preferred = {PREFERRED: [{"weight": weight, "podAffinityTerm": near(other, key)}]}
    disk = labelled("disk", chance.choice(DISKS))
    return chance.choice(
        (
            {"podAntiAffinity": {REQUIRED: [near(app)]}},
            {"podAffinity": preferred},
            {"podAntiAffinity": preferred},
            wants(disk),
            {"nodeAffinity": {PREFERRED: [{"weight": weight, "preference": disk}]}},
        )
    )
