"""A hundred bad specs: each is refused, or in a condition that names the field; nothing is started anew."""

import json

from berth.client.errors import RejectedError
from tests.unit.operator import kit
from tests.unit.operator.at_work import PLUGINS, SCHEDULERS, operating
from tests.unit.operator.bad_specs import SCHEDULERS as REPORTED
from tests.unit.operator.test_definitions import BAD_PLUGINS, BAD_SCHEDULERS


def degraded(work):
    """Give the message of the Scheduler that is bad."""
    status = work.objects("schedulers.berth.dev").get("bad", {}).get("status", {})
    found = [
        one for one in status.get("conditions", ()) if one["type"] == "Degraded" and one["status"] == "True"
    ]
    return found[0]["message"] if found else ""


async def refused(work, collection, document):
    """Say whether the API server refuses a document."""
    try:
        await work.send("POST", collection, document)
    except RejectedError:
        return True
    return False


async def test_hundred(tmp_path):
    """Bad Schedulers and SchedulerPlugins cost a good Scheduler beside them nothing."""
    unnoticed = []
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler("good", profiles=[{"schedulerName": "good"}]))
        await work.reach(lambda: work.condition("Progressing", "good") == ("False", "RolledOut"))
        before = (set(work.objects("pods")), work.objects("deployments.apps"))
        for spec, field, _ in BAD_SCHEDULERS:
            whole = {"profiles": [{"schedulerName": "packing"}], **spec}
            document = {
                **kit.scheduler("bad"),
                "spec": {key: value for key, value in whole.items() if value is not None},
            }
            if not await refused(work, SCHEDULERS, document):
                unnoticed.append(field)
        for spec, field, _ in BAD_PLUGINS:
            if not await refused(work, PLUGINS, kit.plugin(**spec)):
                unnoticed.append(field)
        for spec, field in REPORTED:
            await work.send("POST", SCHEDULERS, kit.scheduler("bad", **spec))
            await work.reach(lambda: work.condition("Degraded", "bad")[0])
            if field not in degraded(work):
                unnoticed.append((field, json.dumps(spec), degraded(work)))
            await work.send("DELETE", f"{SCHEDULERS}/bad")
            await work.reach(lambda: "bad" not in work.objects("schedulers.berth.dev"))

        assert before == (set(work.objects("pods")), work.objects("deployments.apps"))
    assert [] == unnoticed
    assert 100 <= len(BAD_SCHEDULERS) + len(BAD_PLUGINS) + len(REPORTED)
