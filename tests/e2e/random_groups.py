"""Small clusters and pod groups drawn by chance, so that what is decided on them is determined.

Every pod has a priority of its own, so that groups have an order and victims, too; each prefers nodes by
weights that differ, and nothing else has a say in which node is best.
"""

import random

from berth.client.resources import POD_GROUPS, PODS
from tests.e2e.in_turn import Step
from tests.e2e.side_by_side import HOST, PREFERRED, ZONE, labelled, node, pod, thing

GROUP_API = "scheduling.k8s.io/v1alpha2"
GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling", "WorkloadAwarePreemption")
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: -1, contentType: application/json}}
leaderElection: {{leaderElect: false}}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: default-scheduler
  plugins:
    score:
      disabled: [{{name: "*"}}]
      enabled: [{{name: NodeAffinity, weight: 1}}]
"""


class Drawn:
    """A cluster, and the steps that are taken on it."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.gates = [gate for gate in GATES[2:] if self.chance.random() < 0.6]
        self.flags = ("--feature-gates=" + ",".join(f"{gate}=true" for gate in (*GATES[:2], *self.gates)),)
        self._priorities = self.chance.sample(range(1, 1000), 200)
        self.classes = []
        self.names = [f"n{i}" for i in range(self.chance.randint(3, 7))]
        self.objects = [*self._nodes(), *self._crowd()]
        self.steps = [self._step(f"g{i}") for i in range(7)]
        self.objects = [*self.classes, *self.objects]

    def victims(self, step):
        """The priorities by which pods up to that step are victims, and those by which they have to be.

        The first are their own, or their group's where that is disrupted as a whole; the second, of groups
        that are disrupted pod by pod, the group's.
        """
        names = [each.name for each in self.steps]
        drawn = [document for each in self.steps[: names.index(step) + 1] for _, document in each.objects]
        values = {each["metadata"]["name"]: each["value"] for each in self.classes}
        every = [*self.objects, *drawn]
        groups = {each["metadata"]["name"]: each["spec"] for each in every if each["kind"] == "PodGroup"}
        pods = {each["metadata"]["name"]: each["spec"] for each in every if each["kind"] == "Pod"}
        of_group = {
            name: groups[spec["schedulingGroup"]["podGroupName"]]
            for name, spec in pods.items()
            if "schedulingGroup" in spec
        }
        whole, one_by_one = (
            {
                name: values.get(group.get("priorityClassName"), 0)
                for name, group in of_group.items()
                if group.get("disruptionMode", "Pod") == mode
            }
            for mode in ("PodGroup", "Pod")
        )
        own = {name: values.get(spec.get("priorityClassName"), 0) for name, spec in pods.items()}
        return own | whole, one_by_one

    def _priority(self, lowest=0, highest=1000):
        """A class that no other pod has."""
        value = next((v for v in self._priorities if lowest <= v <= highest), None)
        if value is None:
            value = self._priorities[0]
        self._priorities.remove(value)
        name = f"p{value:03}"
        self.classes.append(thing("PriorityClass", name, "scheduling.k8s.io/v1", value=value))
        return name

    def _nodes(self):
        for name in self.names:
            labels = {ZONE: self.chance.choice("abc")} if self.chance.random() < 0.9 else {}
            taints = (
                [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
                if self.chance.random() < 0.15
                else []
            )
            cpu = f"{self.chance.randint(1500, 8000)}m"
            yield node(name, cpu=cpu, taints=taints, pods=str(self.chance.randint(4, 12)), **labels)

    def _crowd(self):
        """Pods and groups that are there already."""
        groups = [
            self._group(f"old-{i}", self.chance.choice(("Pod", "PodGroup", "PodGroup"))) for i in range(2)
        ]
        yield from groups
        for i in range(self.chance.randint(2, 12)):
            spec = {"nodeName": self.chance.choice(self.names), "priorityClassName": self._priority(0, 500)}
            if self.chance.random() < 0.4:
                spec["schedulingGroup"] = {"podGroupName": self.chance.choice(groups)["metadata"]["name"]}
            made = pod(
                f"there-{i}", f"{self.chance.randint(300, 1500)}m", {"app": self.chance.choice("xy")}, **spec
            )
            yield made | {"status": {"phase": "Running", "startTime": f"2026-01-01T00:00:{i:02}Z"}}
        if self.chance.random() < 0.5:
            selector = {"matchLabels": {"app": "x"}}
            yield thing(
                "PodDisruptionBudget",
                "guard",
                "policy/v1",
                "default",
                spec={"minAvailable": 1, "selector": selector},
                status={
                    "disruptionsAllowed": self.chance.choice((0, 1)),
                    "currentHealthy": 2,
                    "desiredHealthy": 1,
                    "expectedPods": 2,
                },
            )

    def _group(self, name, mode=None, **spec):
        fields = {"schedulingPolicy": {"basic": {}}, **spec}
        if mode:
            fields["disruptionMode"] = mode
        if self.chance.random() < 0.8:
            fields["priorityClassName"] = self._priority()
        return thing("PodGroup", name, GROUP_API, "default", spec=fields)

    def _step(self, name):
        if self.chance.random() < 0.15:
            return Step(name, ((PODS, self._pod(f"{name}-alone")),))
        count = self.chance.randint(1, 5)
        least = self.chance.choice((count, count, count, max(1, count - 1), 1))
        gated = self.chance.random() < 0.05
        policy = {"gang": {"minCount": count + 1 if gated else least}}
        if self.chance.random() < 0.25 and not gated:
            policy = {"basic": {}}
        spec = {"schedulingPolicy": policy}
        if self.chance.random() < 0.4:
            spec["schedulingConstraints"] = {
                "topology": [{"key": self.chance.choice((ZONE, ZONE, ZONE, HOST, "rack"))}]
            }
        group = self._group(name, self.chance.choice(("Pod", "PodGroup", None)), **spec)
        size = self.chance.choice((300, 900, 1600, 2500))
        members = [self._pod(f"{name}-{i}", size, name) for i in range(count)]
        # The group comes last: until then its pods are held back, so that they are tried together.
        return Step(name, (*((PODS, member) for member in members), (POD_GROUPS, group)), gated)

    def _pod(self, name, size=900, group=None):
        cpu = f"{size + self.chance.randint(0, 200)}m"
        weights = self.chance.sample(range(5, 101, 5), len(self.names))
        preferred = [
            {"weight": weight, "preference": labelled(HOST, on)}
            for on, weight in zip(self.names, weights, strict=True)
        ]
        spec = {"affinity": {"nodeAffinity": {PREFERRED: preferred}}, "priorityClassName": self._priority()}
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        if self.chance.random() < 0.05:
            spec["nodeSelector"] = {"disk": "ssd"}
        if self.chance.random() < 0.1:
            spec["preemptionPolicy"] = "Never"
        if self.chance.random() < 0.3:
            spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
        return pod(name, cpu, {"app": self.chance.choice("xy")}, **spec)
