"""The descheduler of a Scheduler: what it is made of, what is refused, and what its condition says."""

import pytest
import yaml
from click.testing import CliRunner

from berth.commands.deschedule import deschedule
from berth.operator.errors import ConfigurationProblemError
from berth.operator.rendering import SchedulerDefaults
from berth.operator.reporting.descheduling_condition import descheduling
from tests.failures.reporting import reports
from tests.unit.descheduling.kit import policy
from tests.unit.operator import kit
from tests.unit.operator.at_work import SCHEDULERS, SYSTEM, operating
from tests.unit.operator.test_rendering import found, made

SETTINGS = SchedulerDefaults("berth/scheduler:test", descheduler_image="berth/descheduler:test")
PROFILES = policy("RemovePodsViolatingNodeTaints")["profiles"]
NAME = "berth-main-descheduler"


def planned(**fields):
    fields.setdefault("policy", {"profiles": PROFILES})
    return made(settings=SETTINGS, descheduler=fields)


def container(plan):
    (cron_job,) = found(plan, "CronJob")
    (only,) = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return only


def test_nothing_without_the_field():
    """A Scheduler without a descheduler has no CronJob, and no account for one."""
    assert [] == found(made(settings=SETTINGS), "CronJob")
    assert NAME not in {one["metadata"]["name"] for one in made(settings=SETTINGS).objects}


def test_the_scheduler_stays():
    """A descheduler beside it changes nothing of the scheduler: no pod is started anew."""
    assert planned().objects[: len(made(settings=SETTINGS).objects)] == made(settings=SETTINGS).objects


def test_rights():
    """It runs under an account of its own, which is bound to one role, and is no pod of the scheduler's."""
    plan = planned()
    (template,) = [one["spec"]["jobTemplate"]["spec"]["template"] for one in found(plan, "CronJob")]
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": "team"}
    bound = {
        one["roleRef"]["name"] for one in found(plan, "ClusterRoleBinding") if subject in one["subjects"]
    }

    assert {"berth-scheduler-descheduling"} == bound
    assert NAME == template["spec"]["serviceAccountName"]
    (service,) = found(plan, "Service")
    assert not service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert "berth.dev/scheduler" not in template["metadata"]["labels"]


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({}, "--dry-run"),
        ({"dryRun": False}, "--execute"),
        ({"maxEvictionsPerMinute": 5}, "--max-evictions-per-minute=5"),
        ({"patience": "1m30s"}, "--patience=90"),
    ],
    ids=str,
)
def test_arguments(fields, argument):
    """What the field says is what the command does; nothing is evicted unless it says so."""
    assert argument in container(planned(**fields))["args"]


def test_the_command_takes_the_arguments(tmp_path):
    """The command has every flag, and reads both files: what is wrong in the end is the kubeconfig."""
    plan = planned(maxEvictionsPerMinute=5, patience="90s")
    (files,) = [one["data"] for one in found(plan, "ConfigMap") if one["metadata"]["name"] == NAME]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    arguments = [one.replace("/etc/berth", str(tmp_path)) for one in container(plan)["args"][1:]]
    done = CliRunner().invoke(deschedule, [*arguments, f"--kubeconfig={tmp_path}/absent"])

    assert (2, True) == (done.exit_code, "absent" in done.stderr)
    assert ("descheduler/v1alpha2", "DeschedulerPolicy", PROFILES) == tuple(
        yaml.safe_load(files["policy.yaml"])[field] for field in ("apiVersion", "kind", "profiles")
    )


def test_where_the_users_pods_may_be():
    """What is said of the scheduler's pods and images is true of the descheduler's."""
    secret = [{"name": "registry"}]
    plan = made(
        settings=SETTINGS,
        descheduler={"policy": {"profiles": PROFILES}, "timeZone": "Europe/Paris", "image": "mine:1"},
        pod={"imagePullSecrets": secret, "nodeSelector": {"pool": "a"}},
        featureGates={"GenericWorkload": True},
    )
    (cron_job,) = found(plan, "CronJob")
    spec = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]

    assert (secret, {"pool": "a"}) == (spec["imagePullSecrets"], spec["nodeSelector"])
    assert ("mine:1", "Europe/Paris") == (spec["containers"][0]["image"], cron_job["spec"]["timeZone"])
    assert "--feature-gates=GenericWorkload=true" in spec["containers"][0]["args"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"profiles": []}, "spec.descheduler.policy: profiles: found 0; write 1 to 100"),
        ({"kind": "Policy", "profiles": PROFILES}, "spec.descheduler.policy: kind: found 'Policy'; write"),
        (
            {"profiles": policy(("HighNodeUtilization", {}))["profiles"]},
            r"policy: profiles\[0\].pluginConfig\[1\].args.thresholds: found none; write percentages",
        ),
    ],
)
def test_policies_are_refused_by_field(fields, words):
    """A policy that no plan can be made by is refused as the command would refuse it."""
    with pytest.raises(ConfigurationProblemError, match=words):
        planned(policy=fields)


def test_an_image_is_needed():
    """Where neither the operator nor the field names an image, the field is named."""
    with pytest.raises(ConfigurationProblemError, match=r"spec\.descheduler\.image: .*; name one"):
        made(descheduler={"policy": {"profiles": PROFILES}})


def cron_job(suspend=False, **status):
    return {"metadata": {"name": NAME}, "spec": {"schedule": "@hourly", "suspend": suspend}, "status": status}


EARLY, LATE = "2026-11-23T08:00:00Z", "2026-11-23T08:30:00Z"


@reports("descheduling-fails", condition="`Descheduling` of the Scheduler: `JobFailed`")
@pytest.mark.parametrize(
    ("seen", "holds", "reason"),
    [
        (None, False, "NotDeployed"),
        (cron_job(suspend=True), False, "Suspended"),
        (cron_job(), True, "Scheduled"),
        (cron_job(lastScheduleTime=LATE, active=[{"name": "x"}]), True, "Running"),
        (cron_job(lastScheduleTime=EARLY, lastSuccessfulTime=LATE), True, "Succeeded"),
        (cron_job(lastScheduleTime=LATE, lastSuccessfulTime=EARLY), False, "JobFailed"),
        (cron_job(lastScheduleTime=LATE), False, "JobFailed"),
    ],
)
def test_condition(seen, holds, reason):
    """The condition follows from the CronJob's status; a Job that failed is bad news."""
    (condition,) = descheduling({}, seen)

    assert ("Descheduling", holds, reason) == (condition.type, condition.holds, condition.reason)


def test_no_condition_without_the_field():
    """A Scheduler without a descheduler says nothing of one."""
    assert [] == descheduling(None, cron_job())


async def test_the_field_comes_and_goes(tmp_path):
    """With the field there are a CronJob and its account; without, they are gone, and the condition, too."""

    def names(*collections):
        return [name for each in collections for name in work.objects(each) if "desched" in name]

    def kept():
        return names(
            "cronjobs.batch",
            "serviceaccounts",
            "configmaps",
            "clusterrolebindings.rbac.authorization.k8s.io",
        )

    async with operating(tmp_path, descheduler_image="berth/descheduler:test") as work:
        chosen = {"policy": {"profiles": PROFILES}}
        await work.send("POST", SCHEDULERS, kit.scheduler(descheduler=chosen))
        await work.reach(lambda: work.condition("Descheduling") == ("True", "Scheduled"))
        assert [NAME] * 3 == kept()[:3]
        assert f"berth-scheduler-descheduling:{SYSTEM}:main" == kept()[3]
        owners = work.objects("cronjobs.batch")[NAME]["metadata"]["ownerReferences"]
        assert [("Scheduler", "main")] == [(one["kind"], one["name"]) for one in owners]
        ran = {"status": {"lastScheduleTime": LATE}}
        path = f"/apis/batch/v1/namespaces/{SYSTEM}/cronjobs/{NAME}"
        await work.send("PATCH", f"{path}/status", ran)
        await work.reach(lambda: work.condition("Descheduling") == ("False", "JobFailed"))
        await work.send("PATCH", path, {"spec": {"schedule": "0 0 1 1 *"}})
        await work.reach(lambda: work.objects("cronjobs.batch")[NAME]["spec"]["schedule"] == "*/30 * * * *")

        await work.send("PATCH", f"{SCHEDULERS}/main", {"spec": {"descheduler": None}})
        await work.reach(lambda: not kept() and work.condition("Descheduling") == (None, None))

    assert [] == work.ledger.denied
