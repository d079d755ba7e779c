"""Small clusters with devices of all kinds, and pods with claims, drawn so that allocations are determined.

A pod goes to a node that it names, or prefers nodes by weights that differ; alternatives of a claim
weigh more than any of them, and nothing else has a say in which node is best.
"""

import random

from berth.client.resources import POD_GROUPS, PODS, RESOURCE_CLAIMS
from tests.e2e.device_pools import API, DRIVER, NIC, classes, pools
from tests.e2e.in_turn import Step
from tests.e2e.random_groups import CONFIGURATION as OF_GROUPS
from tests.e2e.random_groups import GATES, GROUP_API
from tests.e2e.side_by_side import HOST, PREFERRED, ZONE, labelled, node, pod, thing

CONFIGURATION = OF_GROUPS.replace(
    "[{{name: NodeAffinity, weight: 1}}]",
    "[{{name: NodeAffinity, weight: 1}}, {{name: DynamicResources, weight: 101}}]",
)
EXPRESSIONS = (
    f'device.attributes["{DRIVER}"].model == "x"',
    f'device.attributes["{DRIVER}"].model in ["x", "z"]',
    f'device.attributes["{DRIVER}"].numa == 1',
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("4Gi")) >= 0',
    f'device.attributes["{DRIVER}"].version.isGreaterThan(semver("1.5.0"))',
    f'has(device.attributes["{DRIVER}"].fast) && device.attributes["{DRIVER}"].fast',
    f'device.driver == "{NIC}"',
    'device.attributes["shared.example.com"].?rack.orValue("") != "r1"',
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
)
# Fails on devices that lack the attribute.
BROKEN = f'device.attributes["{DRIVER}"].fast'
ATTRIBUTES = (
    f"{DRIVER}/model",
    f"{DRIVER}/numa",
    "shared.example.com/rack",
    f"{DRIVER}/version",
    f"{DRIVER}/missing",
)
TOLERATIONS = (
    {"operator": "Exists"},
    {"key": "bad", "operator": "Exists"},
    {"key": "bad", "operator": "Equal", "value": "v", "effect": "NoSchedule"},
)


class Drawn:
    """A cluster, and the steps that are taken on it."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.names = [f"n{i}" for i in range(self.chance.randint(2, 4))]
        self.flags = ("--feature-gates=" + ",".join(f"{gate}=true" for gate in GATES[:2]),)
        self.classes = [
            thing("PriorityClass", f"p{i:03}", "scheduling.k8s.io/v1", value=i) for i in range(1, 100)
        ]
        self._free = self.chance.sample(self.classes, len(self.classes))
        self.objects = [*self.classes, *self._nodes(), *classes(self.chance), *pools(self.chance, self.names)]
        self.shared = [self._claim(f"shared-{i}") for i in range(3)]
        self.objects += self.shared
        self.steps = [self._step(f"s{i}") for i in range(14)]

    def _nodes(self):
        for name in self.names:
            made = node(name, cpu="16", **{ZONE: self.chance.choice("ab")})
            if self.chance.random() < 0.3:
                made["status"]["allocatable"]["example.com/plugin"] = made["status"]["capacity"][
                    "example.com/plugin"
                ] = "2"
            yield made

    def _step(self, name):
        if self.chance.random() < 0.25:
            return self._gang(name)
        claims, drawn = self._pod(name)
        return Step(name, (*((RESOURCE_CLAIMS, claim) for claim in claims), (PODS, drawn)))

    def _gang(self, name):
        count = self.chance.randint(2, 3)
        least = self.chance.choice((count, count, 1))
        group = thing(
            "PodGroup", name, GROUP_API, "default", spec={"schedulingPolicy": {"gang": {"minCount": least}}}
        )
        members = [self._pod(f"{name}-{i}", name) for i in range(count)]
        claims = [claim for made, _ in members for claim in made]
        return Step(
            name,
            (
                *((RESOURCE_CLAIMS, claim) for claim in claims),
                *((PODS, drawn) for _, drawn in members),
                (POD_GROUPS, group),
            ),
        )

    def _pod(self, name, group=None):
        """A pod, and the claims that are made for it."""
        weights = self.chance.sample(range(5, 101, 5), len(self.names))
        preferred = [
            {"weight": weight, "preference": labelled(HOST, on)}
            for on, weight in zip(self.names, weights, strict=True)
        ]
        spec = {
            "affinity": {"nodeAffinity": {PREFERRED: preferred}},
            "priorityClassName": self._free.pop()["metadata"]["name"],
        }
        if self.chance.random() < 0.4:
            spec["nodeSelector"] = {HOST: self.chance.choice(self.names)}
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        requests, claims = {}, []
        if self.chance.random() < 0.25:
            resource = self.chance.choice(
                ("example.com/gpu", "deviceclass.resource.kubernetes.io/nic", "example.com/plugin")
            )
            requests = {resource: str(self.chance.choice((1, 1, 2, 3)))}
        if not requests or self.chance.random() < 0.3:
            claims = [self._claim(f"{name}-c{i}") for i in range(self.chance.choice((1, 1, 1, 2)))]
        used = [*claims, *([self.chance.choice(self.shared)] if self.chance.random() < 0.2 else [])]
        entries = [
            {"name": f"e{i}", "resourceClaimName": claim["metadata"]["name"]} for i, claim in enumerate(used)
        ]
        made = pod(name, requests=requests, resourceClaims=entries, **spec)
        container = made["spec"]["containers"][0]
        container["resources"]["limits"] = requests
        if requests and self.chance.random() < 0.4:
            (resource,) = requests
            more = {resource: str(self.chance.choice((1, 2, 4)))}
            resources = {"requests": more, "limits": more}
            made["spec"]["initContainers"] = [{"name": "i", "image": "app:1", "resources": resources}]
            if self.chance.random() < 0.4:
                made["spec"]["initContainers"][0]["restartPolicy"] = "Always"
            if self.chance.random() < 0.5:
                made["spec"]["containers"].append({**container, "name": "d"})
        return claims, made

    def _claim(self, name):
        requests = [self._request(f"r{i}") for i in range(self.chance.choice((1, 1, 1, 2, 3)))]
        spec = {"requests": requests}
        if self.chance.random() < 0.35:
            kind = self.chance.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
            constraint = {kind: self.chance.choice(ATTRIBUTES)}
            if self.chance.random() < 0.4:
                constraint["requests"] = [self._named(self.chance.choice(requests))]
            spec["constraints"] = [constraint]
        if self.chance.random() < 0.2:
            parameters = {"driver": DRIVER, "parameters": {"from": "claim"}}
            config = {"opaque": parameters}
            if self.chance.random() < 0.6:
                config["requests"] = [self._named(self.chance.choice(requests))]
            spec["config"] = [config]
        return thing("ResourceClaim", name, API, "default", spec={"devices": spec})

    def _named(self, request):
        """The request, or one of its alternatives."""
        subs = request.get("firstAvailable", ())
        if subs and self.chance.random() < 0.5:
            return f"{request['name']}/{self.chance.choice(subs)['name']}"
        return request["name"]

    def _request(self, name):
        if self.chance.random() < 0.3:
            subs = [{"name": f"a{i}", **self._asked()} for i in range(self.chance.randint(1, 4))]
            return {"name": name, "firstAvailable": subs}
        exactly = self._asked()
        if self.chance.random() < 0.1:
            exactly["adminAccess"] = True
        return {"name": name, "exactly": exactly}

    def _asked(self):
        name = self.chance.choice(("gpu", "gpu", "gpu", "nic", "nic", "any", "fast"))
        made = {"deviceClassName": "unheard-of" if self.chance.random() < 0.01 else name}
        if self.chance.random() < 0.12:
            made["allocationMode"] = "All"
        else:
            made |= {"allocationMode": "ExactCount", "count": self.chance.choice((1, 1, 1, 2, 3))}
        chosen = self.chance.sample(EXPRESSIONS, self.chance.choice((0, 0, 0, 1, 1, 2)))
        chosen += [BROKEN] if self.chance.random() < 0.02 else []
        if chosen:
            made["selectors"] = [{"cel": {"expression": each}} for each in chosen]
        if self.chance.random() < 0.25:
            made["tolerations"] = [self.chance.choice(TOLERATIONS)]
        if self.chance.random() < (0.5 if name == "nic" else 0.1):
            made["capacity"] = {"requests": {"bandwidth": self.chance.choice(("1", "3", "7", "100"))}}
            if self.chance.random() < 0.4:
                made["capacity"]["requests"]["vram"] = self.chance.choice(("1500Mi", "1100M", "2Gi", "1"))
        return made
