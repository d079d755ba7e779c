"""Condition KubernetesTested: whether Berth was tried with the API server's release."""

from berth.config.releases.tried import untried
from berth.operator.reporting.conditions import KUBERNETES_TESTED, StatusCondition


def kubernetes_tested(git_version: str) -> list[StatusCondition]:
    """Give the condition for an API server of that version; none while that is not known."""
    if not git_version:
        return []
    found = untried(git_version)
    if found is not None:
        return [StatusCondition(KUBERNETES_TESTED, False, *found)]
    return [
        StatusCondition(KUBERNETES_TESTED, True, "Tested", f"Kubernetes {git_version} is of a tested release")
    ]
