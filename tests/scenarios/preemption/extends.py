"""An extender with a say in preemption."""

from berth.framework.extender import Victims


class Extends:
    """Answers (victims' names, violations) by node, raises an exception, or agrees where it is None."""

    filters = prioritizes = binds = False
    preempts, weight = True, 1

    def __init__(self, name="ext", answer=None, *, ignorable=False, about="high"):
        self.name, self.answer, self.ignorable, self.about = name, answer, ignorable, about
        self.asked = []

    def interested(self, pod):
        return pod.name == self.about

    async def preempt(self, attempt, victims):
        self.asked.append({name: [pod.name for pod in one.pods] for name, one in victims.items()})
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            return dict(victims)
        known = {info.pod.name: info.pod for pods in attempt.nodes.pods for info in pods.values()}
        return {
            name: Victims(tuple(known[pod] for pod in pods), violations)
            for name, (pods, violations) in self.answer.items()
        }
