"""The dry run as the specification words it: one node, one pod after the other, every step on a new table."""

from berth.evaluation.filter_with_nominated import filter_with_nominated
from berth.evaluation.points.filtering import filter_one
from berth.framework.attempts.attempt import Attempt
from berth.framework.status import Code, PluginError, failed, unresolvable
from berth.preemption.candidates import Candidate
from berth.snapshot.pod_info import PodInfo


class Node:
    """One node with pods evicted on trial; each question is asked on a table made for it."""

    def __init__(self, framework, attempt, name, nominated):
        self.framework, self.attempt, self.name = framework, attempt, name
        self.state = attempt.state.clone()
        self.nominated = nominated
        self.away = {}

    @property
    def table(self):
        return self.attempt.nodes.what_if(self.name, remove=self.away.values())

    def move(self, info, *, away):
        if away:
            self.away[info.uid] = info
        else:
            del self.away[info.uid]
        for plugin in self.framework.extensions:
            if plugin.name not in self.attempt.state.skip_filter:
                follow = plugin.remove_pod if away else plugin.add_pod
                follow(self.state, self.attempt.pod, info, self.table)

    async def status(self):
        plugins, attempt = self.framework.plugins.filter, self.attempt.on(self.table, self.state)
        try:
            if self.nominated:
                extensions = self.framework.extensions
                status = await filter_with_nominated(plugins, extensions, attempt, 0, self.nominated)
                if not status.ok:
                    return status
            return await filter_one(plugins, attempt)
        except PluginError as error:
            return failed(error)


def important_first(infos, now):
    """Higher priority, then earlier start."""
    start = lambda info: info.pod.start_time.timestamp() if info.pod.start_time else now  # noqa: E731
    return sorted(infos, key=lambda info: (-info.pod.priority, start(info)))


def split(infos, budgets):
    """Those that violate a budget and those that do not."""
    left = {one.key: one.status.disruptions_allowed for one in budgets}
    violating, others = [], []
    for info in infos:
        pod, bad = info.pod, False
        for one in budgets:
            wanted = one.spec.selector.match_labels if one.spec.selector else {}
            means = one.namespace == pod.namespace and wanted and wanted.items() <= pod.labels.items()
            if means and pod.name not in one.status.disrupted_pods:
                left[one.key] -= 1
                bad = bad or left[one.key] < 0
        (violating if bad else others).append(info)
    return violating, others


async def plain_dry_run(framework, attempt: Attempt, row, *, budgets, nominated_pods, now):
    """A Candidate or a Status."""
    nodes, pod = attempt.nodes, attempt.pod
    name = nodes.names[row]
    nominated = [PodInfo(p) for p in nominated_pods if p.priority >= pod.priority and p.uid != pod.uid]
    node = Node(framework, attempt, name, nominated)
    potential = [info for info in nodes.pods[row].values() if info.pod.priority < pod.priority]
    for info in potential:
        node.move(info, away=True)
    if not potential:
        return unresolvable("No preemption victims found for incoming pod")
    status = await node.status()
    if not status.ok:
        return status
    violating, others = split(important_first(potential, now), budgets)
    victims, violations = [], 0
    for info in violating + others:
        node.move(info, away=False)
        if (await node.status()).ok:
            continue
        node.move(info, away=True)
        victims.append(info)
        violations += info in violating
    if violating and others:
        victims = important_first(victims, now)
    if not victims:
        return failed(f'expected at least one victim pod on node "{name}"')
    return Candidate(name, tuple(info.pod for info in victims), violations)


def reported(outcome):
    """An outcome in a form that can be compared."""
    if isinstance(outcome, Candidate):
        return outcome
    return outcome.code, sorted(outcome.reasons), "" if outcome.code is Code.ERROR else outcome.plugin
