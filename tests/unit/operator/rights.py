"""Rights as they are given and as they are used, to be compared."""

import asyncio
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import yaml

from berth.operator.rendering.rights import lease_rules
from berth.sandbox import SandboxOptions, serve
from berth.sandbox.access.identity import service_account
from tests.suite import PATIENCE_SECONDS

BASE = Path(__file__).parents[3] / "kustomize" / "base"
RBAC = "rbac.authorization.k8s.io"


def documents(*files):
    """Give the objects of files of kustomize's base."""
    return [one for file in files for one in yaml.safe_load_all((BASE / file).read_text())]


def scheduler_roles(*leases):
    """Give the roles of a scheduler: those of kustomize's base, and what the operator makes for a lease."""
    head = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole"}
    own = ({**head, "metadata": {"name": f"lease-{one}"}, "rules": lease_rules(one)} for one in leases)
    return [*documents("scheduler_rights.yaml"), *own]


def granted(roles):
    """Give every (verb, group, resource, name) of some roles; no name means any, and no group a path."""
    found = set()
    for rule in (rule for role in roles for rule in role["rules"]):
        parts = (
            (rule["verbs"], [None], rule["nonResourceURLs"], [""])
            if "nonResourceURLs" in rule
            else (rule["verbs"], rule["apiGroups"], rule["resources"], rule.get("resourceNames", [""]))
        )
        found |= set(product(*parts))
    return found


def serves(right, asked):
    """Whether what was asked took this right."""
    verb, group, resource, name = right
    if group is None:
        return asked.verb == verb and fnmatchcase(asked.path, resource)
    return (asked.verb, asked.group, asked.resource) == right[:3] and name in ("", asked.name)


class Ledger:
    """What one user asked for, and was granted."""

    def __init__(self, sandbox, user):
        self.used, self.user, self.sandbox = [], user, sandbox
        rbac = sandbox.access._rbac
        allows = rbac.allows

        def noted(who, asked):
            allowed = allows(who, asked)
            if who.name == user.name and allowed:
                self.used.append(asked)
            return allowed

        rbac.allows = noted

    @property
    def denied(self):
        return [str(asked) for who, asked in self.sandbox.denied if who.name == self.user.name]

    def spare(self, roles):
        """Give the rights of the roles that were never used."""
        return {right for right in granted(roles) if not any(serves(right, one) for one in self.used)}


def bound(role, user):
    """Give the binding of a ClusterRole to a service account, everywhere."""
    _, _, namespace, name = user.name.split(":")
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{role}-{name}"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


@asynccontextmanager
async def guarded(tmp_path, namespace, name, **options):
    """A sandbox with RBAC, the ledger of a service account, and the account's kubeconfig."""
    async with await serve(SandboxOptions(rbac=True, **options)) as sandbox:
        user = service_account(namespace, name)
        kubeconfig = tmp_path / "account"
        kubeconfig.write_text(sandbox.kubeconfig_for(user))
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        yield sandbox, Ledger(sandbox, user), kubeconfig


@asynccontextmanager
async def running(work, stop):
    """Something at work until the block ends, which then is asked to stop."""
    task = asyncio.create_task(work)
    try:
        yield task
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
