"""`berth simulate consolidate`: which pods would have to move so that what waits fits."""

import sys
from pathlib import Path

import click

from berth.cli.failing import fail
from berth.commands.simulated_scheduler import CONFIG, FEATURE_GATES, RELEASE, read_scheduler
from berth.commands.simulating import OUTPUT, show

EXIT_PENDING = 3
STRATEGY = "Consolidation"


@click.command()
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A DeschedulerPolicy that has the strategy Consolidation; without one, that strategy alone with its "
    "defaults.",
)
@CONFIG
@FEATURE_GATES
@RELEASE
@OUTPUT
def consolidate(
    *,
    inputs: tuple[str, ...],
    policy_file: Path | None,
    config_file: str,
    feature_gates: str,
    release: str,
    output: str,
) -> None:
    """Say who would have to move where, so that pods and groups fit that wait for room.

    Each move is one that the scheduler's engine would make: the pod that is made anew has a node before
    another is looked at, budgets and protections are kept, and no pod moves for one of lower priority.
    `berth deschedule` with the same policy carries it out.

    INPUT is what `berth simulate` takes. Exits with 0 where all that waits fits afterwards, with 3 where
    something waits still, and with 2 where an input, the policy or the configuration is wrong.
    """
    # Imported here so that the other verbs start quickly.
    from berth.commands.deschedule import now, read_policy_file  # noqa: PLC0415 (see above)
    from berth.config.descheduling.policy import one_strategy  # noqa: PLC0415 (see above)
    from berth.config.errors import ConfigError  # noqa: PLC0415 (see above)
    from berth.descheduling.cluster import read_files  # noqa: PLC0415 (see above)
    from berth.descheduling.planner import plan  # noqa: PLC0415 (see above)
    from berth.descheduling.text import consolidation_lines  # noqa: PLC0415 (see above)
    from berth.queue.errors import EventRegistrationError  # noqa: PLC0415 (see above)
    from berth.simulation.errors import SimulationError  # noqa: PLC0415 (see above)
    from berth.simulation.running.options import SimulationOptions  # noqa: PLC0415 (see above)

    try:
        settings = read_scheduler(config_file, feature_gates, release=release)
        policy = one_strategy(STRATEGY) if policy_file is None else read_policy_file(policy_file)
        if not any(name == STRATEGY for profile in policy.profiles for name, _ in profile.strategies):
            fail(f"--policy: {policy_file}: no profile enables {STRATEGY}; add it to plugins.balance.enabled")
        found = plan(read_files(inputs, policy), policy, SimulationOptions(*settings), now())
    except (SimulationError, ConfigError, EventRegistrationError) as error:
        fail(error)
    show(found, output, consolidation_lines(found))
    sys.exit(EXIT_PENDING if any(not left.node for left in found.left_alone) else 0)
