"""The operator issues what its schedulers and it itself serve with, and touches no other Secret."""

import base64

from berth.operator.certificates import Pair
from berth.operator.kinds import AUTHORITY, EXPLAIN_API, SERVING_SECRET
from tests.unit.explaining_at_work import SERVICE
from tests.unit.operator import kit
from tests.unit.operator.at_work import SCHEDULERS, SYSTEM, operating
from tests.unit.operator.test_certificates import greeted

SECRETS = f"/api/v1/namespaces/{SYSTEM}/secrets"


def pair(work, name="main"):
    """Give a Scheduler's certificate and key, None while there are none."""
    data = work.objects("secrets").get(SERVING_SECRET, {}).get("data") or {}
    files = [data.get(f"{name}.{suffix}") for suffix in ("crt", "key")]
    return Pair(*map(base64.b64decode, files)) if all(files) else None


def trusted(work, name="berth-main-ca"):
    """Give what a ConfigMap says is to be trusted."""
    return work.objects("configmaps")[name]["data"]["ca.crt"]


async def made(work, *names):
    """Create Schedulers, and wait until they are rolled out."""
    for name in names:
        profiles = [{"schedulerName": f"of-{name}"}]
        await work.send("POST", SCHEDULERS, kit.scheduler(name, profiles=profiles))
    for name in names:
        await work.reach(lambda name=name: work.condition("Progressing", name) == ("False", "RolledOut"))


async def test_verifies(tmp_path):
    """A client that trusts the Scheduler's ConfigMap takes its certificate for its Service's name."""
    async with operating(tmp_path) as work:
        await made(work, "main")

        assert "" == await greeted(pair(work), trusted(work), f"berth-main.{SYSTEM}.svc")
        assert trusted(work) == trusted(work, AUTHORITY)


async def test_explains_under_one_name(tmp_path):
    """Schedulers answer by the name of the APIService's Service, and the APIService trusts them."""
    async with operating(tmp_path, explain_service=SERVICE) as work:
        await made(work, "main")
        await work.reach(lambda: work.objects("apiservices.apiregistration.k8s.io"))
        bundle = work.objects("apiservices.apiregistration.k8s.io")[EXPLAIN_API]["spec"]["caBundle"]

        for name in (SERVICE, "berth-main"):
            trust = base64.b64decode(bundle).decode()
            assert "" == await greeted(pair(work), trust, f"{name}.{SYSTEM}.svc")


async def test_one_secret(tmp_path):
    """Schedulers of a namespace have their certificates in one Secret, and keep them when another goes."""
    async with operating(tmp_path) as work:
        await made(work, "one", "two", "three")
        before = [pair(work, name) for name in ("one", "three")]
        await work.send("DELETE", f"{SCHEDULERS}/two")
        await work.reach(lambda: pair(work, "two") is None)

        assert before == [pair(work, name) for name in ("one", "three")]
        assert None not in before


async def test_last_one_goes(tmp_path):
    """With the last Scheduler of a namespace the Secret goes, too."""
    async with operating(tmp_path) as work:
        await made(work, "main")
        await work.send("DELETE", f"{SCHEDULERS}/main")
        await work.reach(lambda: SERVING_SECRET not in work.objects("secrets"))

        assert AUTHORITY in work.objects("secrets")


async def test_damaged(tmp_path):
    """A certificate that is changed or deleted by hand is issued anew, and verifies."""
    async with operating(tmp_path) as work:
        await made(work, "main")
        first = pair(work)
        await work.send("PATCH", f"{SECRETS}/{SERVING_SECRET}", {"data": {"main.key": "eA=="}})
        await work.reach(lambda: pair(work).certificate != first.certificate)
        await work.send("DELETE", f"{SECRETS}/{SERVING_SECRET}")
        await work.reach(lambda: pair(work) is not None)

        assert "" == await greeted(pair(work), trusted(work), "berth-main")


async def test_authority_deleted(tmp_path):
    """A new authority is published, and certificates of the old one are issued anew."""
    async with operating(tmp_path) as work:
        await made(work, "main")
        old, first = trusted(work), pair(work)
        await work.send("DELETE", f"{SECRETS}/{AUTHORITY}")
        await work.reach(lambda: trusted(work) != old and pair(work) != first)

        assert "" == await greeted(pair(work), trusted(work), "berth-main")


async def test_foreign(tmp_path):
    """A Secret of another that has the name is named, left as it is, and nothing is deployed."""
    async with operating(tmp_path) as work:
        theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SERVING_SECRET}}
        await work.send("POST", SECRETS, theirs | {"data": {"theirs": "eA=="}})
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await work.reach(lambda: work.condition("Degraded") == ("True", "NotControlled"))

        assert {"theirs": "eA=="} == work.objects("secrets")[SERVING_SECRET]["data"]
        assert {} == work.objects("deployments.apps")
        await work.send("DELETE", f"{SECRETS}/{SERVING_SECRET}")
        await work.reach(lambda: work.condition("Progressing") == ("False", "RolledOut"))


async def test_no_other_secret(tmp_path):
    """The operator neither reads nor writes a Secret of another name, from first to last."""
    async with operating(tmp_path) as work:
        await made(work, "main")
        await work.send("DELETE", f"{SCHEDULERS}/main")
        await work.reach(lambda: SERVING_SECRET not in work.objects("secrets"))
        named = {asked.name for asked in work.ledger.used if asked.resource == "secrets"}

        assert {AUTHORITY, SERVING_SECRET} == named
