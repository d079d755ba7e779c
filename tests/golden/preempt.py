"""Kind `preempt`: what evicting pods could do for a pod that fits nowhere, and what is done."""

import numpy as np

from berth.evaluation.points.post_filtering import run_post_filters
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis, FitError
from berth.framework.interface import NominatingMode
from berth.framework.preempting import PreemptionRequest
from berth.framework.runtime import Framework
from berth.framework.status import Code, Status
from berth.preemption.candidates import Candidate, best_candidates
from berth.preemption.eligibility import why_not_eligible
from berth.preemption.victims import Seniority
from tests.golden import schedule
from tests.golden.cluster import build, pod_of

PLUGIN = "DefaultPreemption"
# Pods that have not started count as starting now, which is later than every start in the vectors.
NOW = 4e9


async def answer(scenario):
    """What the vectors call `expected`, and the plugins that could not be asked."""
    found, missing = await schedule.answer(scenario)
    turned = await preempted(in_order(scenario, backwards=True))
    found["preempt"] = await preempted(in_order(scenario))
    for node, candidate in found["preempt"].get("candidates", {}).items():
        other = turned["candidates"][node]["victims"]
        if other != candidate["victims"]:
            candidate["victimsIfReversed"] = other
    return found, missing


def in_order(scenario, *, backwards=False):
    """The scenario with its pods by namespace and name, as the order of pods on a node may decide."""
    pods = sorted(
        scenario["objects"].get("pods", ()),
        key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]),
        reverse=backwards,
    )
    return {**scenario, "objects": {**scenario["objects"], "pods": pods}}


async def preempted(scenario):
    """The whole of preemption for the scenario's pod."""
    cluster, pod = build(scenario), pod_of(scenario["pod"])
    framework = cluster.frameworks[pod.spec.scheduler_name]
    framework.plugins.by_name[PLUGIN].handle.clock.seconds = NOW
    attempt = cluster.attempt(pod)
    status = await cluster.search().find(framework, attempt, cluster.answers(pod))
    if not (isinstance(status, Status) and isinstance(status.error, FitError)):
        return {"attempted": False}
    diagnosis = status.error.diagnosis
    potential = diagnosis.rows_with(Code.UNSCHEDULABLE)
    reason = why_not_eligible(pod, cluster.snapshot, diagnosis)
    text = {
        "attempted": True,
        "eligible": not reason,
        "potentialNodes": sorted(cluster.snapshot.names[row] for row in np.flatnonzero(potential)),
        "best": [],
    }
    if reason:
        text["eligibleReason"] = reason
    elif potential.any():
        text |= await tried(framework, attempt, diagnosis)
    return text | await carried_out(framework, attempt, diagnosis, status, text["best"])


async def tried(framework: Framework, attempt: Attempt, diagnosis: Diagnosis):
    """Every potential node, and the best of the candidates."""
    request = PreemptionRequest(PLUGIN, attempt.pod, attempt.state, diagnosis)
    preemption = framework.plugins.by_name[PLUGIN].handle.preemption
    rows = np.flatnonzero(diagnosis.rows_with(Code.UNSCHEDULABLE))
    outcomes = dict(zip(rows.tolist(), await preemption.dry_run(request).run(rows), strict=True))
    candidates = [outcome for outcome in outcomes.values() if isinstance(outcome, Candidate)]
    searched = (await preemption.candidates(request)).found
    assert sorted(candidates, key=node_name) == sorted(searched, key=node_name), "what production finds"
    return {
        "candidates": {candidate.node_name: spelled(candidate) for candidate in candidates},
        "notCandidates": {
            diagnosis.node_names[row]: schedule.spelled(outcome, plugin=True)
            for row, outcome in outcomes.items()
            if isinstance(outcome, Status)
        },
        "best": sorted(map(node_name, best_candidates(candidates, Seniority(NOW)))),
    }


def node_name(candidate: Candidate) -> str:
    """The candidate's node."""
    return candidate.node_name


def spelled(candidate: Candidate):
    """A candidate as the vectors write it."""
    keys = [victim.key for victim in candidate.victims]
    return {"victims": sorted(keys), "victimsByImportance": keys, "pdbViolations": candidate.pdb_violations}


async def carried_out(framework: Framework, attempt: Attempt, diagnosis: Diagnosis, status: Status, best):
    """The PostFilter phase, and what becomes of the nomination."""
    result = await run_post_filters(framework.plugins.post_filter, attempt, diagnosis)
    diagnosis.post_filter_message = result.status.message
    nominating = result.nominating_info
    if nominating is None or nominating.mode is NominatingMode.NOOP:
        what = "none"
    else:
        what = "override" if nominating.node_name else "clear"
    assert what != "override" or nominating.node_name in best, "nominated to one of the best"
    return {
        "nominating": what,
        "status": schedule.spelled(result.status, plugin=not result.status.ok),
        "messageAfterPostFilter": status.message,
    }
