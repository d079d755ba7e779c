"""An operator that loses its lease ends with that one error, however many of its parts find it out."""

import pytest

from berth.client.errors import LeaseLostError
from tests.failures.reporting import reports
from tests.unit.operator.at_work import SYSTEM, operating

LEASES = "leases.coordination.k8s.io"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/berth-operator"


async def lose_the_lease(tmp_path):
    """Run an operator, write another holder into its lease, and wait for its end."""
    async with operating(tmp_path) as operator:
        await operator.reach(lambda: operator.objects(LEASES))
        await operator.send("PATCH", LEASE, {"spec": {"holderIdentity": "another"}})
        await operator.reach(operator.process.done)


@reports("operator-lease-lost", answer="the operator ends with `Leaderelection lost`")
async def test_a_lost_lease_is_one_error(tmp_path):
    """Not a group of errors, which the command would show as a traceback."""
    with pytest.raises(LeaseLostError, match="Leaderelection lost"):
        await lose_the_lease(tmp_path)
