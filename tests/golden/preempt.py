"""Kind `preempt`: what evicting pods could do for a pod that fits nowhere, and what is done."""

import msgspec
import numpy as np

from berth.framework.diagnosis import Diagnosis, FitError
from berth.framework.handle import Handle
from berth.framework.interface import NominatingInfo, NominatingMode
from berth.framework.post_filtering import run_post_filters
from berth.framework.preempting import PreemptionRequest
from berth.framework.runtime import Framework
from berth.framework.status import Code, Status
from berth.objects.pod import Pod
from berth.preemption.candidates import Candidate, best_candidates
from berth.preemption.eligibility import why_not_eligible
from tests.golden import schedule
from tests.golden.cluster import Cluster, build, pod_of
