"""State.Sync: streams that break and are opened again."""

from berth.conformance.answers import decided, same
from berth.conformance.check import check, expect
from berth.conformance.subject import Subject, brief, skip
from berth.conformance.world import Stream, World, shown
from berth.out_of_tree._generated import state_pb2

CLAUSE = "State"


async def _reopened(world: World) -> Stream:
    """A second stream; skips where the plugin does not keep what it held."""
    stream = await Stream(world.subject).opened()
    if not stream.held.epoch:
        raise skip("the plugin keeps nothing when a stream ends")
    world.stream = stream
    return stream


@check("sync/held-again", "a new stream says what survived the last one", CLAUSE)
async def held_again(subject: Subject) -> None:
    """What is held, or nothing; never anything else."""
    world = await shown(subject)
    await world.step()
    held = (await Stream(subject).opened()).held
    wanted = state_pb2.Held(epoch=world.epoch, generation=world.generation)
    expect(held in (wanted, state_pb2.Held()), f"{brief(wanted)} or nothing", brief(held))


@check("sync/resume", "a stream resumes from what is held", CLAUSE, after=("sync/held-again",))
async def resume(subject: Subject) -> None:
    """The resumption is acknowledged, then deltas go on."""
    world = await shown(subject)
    stream = await _reopened(world)
    await stream.write(begin=state_pb2.Begin(epoch=world.epoch, resume_generation=world.generation))
    await stream.acked(world.generation)
    await world.step()


@check(
    "sync/resume-early",
    "resuming too early is harmless",
    CLAUSE,
    after=(
        "sync/held-again",
        "sync/resume",
        "sync/repeated-delta",
    ),
)
async def resume_early(subject: Subject) -> None:
    """Steps that are held already are skipped."""
    world = await shown(subject)
    first = await world.step()
    stream = await _reopened(world)
    await stream.write(begin=state_pb2.Begin(epoch=world.epoch, resume_generation=1))
    await stream.acked(world.generation)
    await stream.write(delta=first)
    await stream.acked(world.generation)
    await world.step()


@check("sync/resume-unknown-epoch", "an unknown epoch can't be resumed", CLAUSE)
async def resume_unknown_epoch(subject: Subject) -> None:
    """It ends in a full transfer, never in a wrong answer."""
    await shown(subject)
    stream = await Stream(subject).opened()
    await stream.write(begin=state_pb2.Begin(epoch="never-held", resume_generation=1))
    await stream.nacked(state_pb2.NACK_REASON_CANNOT_RESUME)


@check("sync/resume-ahead", "a generation that was never held can't be resumed", CLAUSE)
async def resume_ahead(subject: Subject) -> None:
    """Steps would be missing."""
    world = await shown(subject)
    stream = await Stream(subject).opened()
    await stream.write(begin=state_pb2.Begin(epoch=world.epoch, resume_generation=world.generation + 7))
    await stream.nacked(state_pb2.NACK_REASON_CANNOT_RESUME)


@check(
    "sync/mid-cycle",
    "a transfer in the middle of an attempt changes no answer",
    CLAUSE,
    needs=("nodes",),
)
async def mid_cycle(subject: Subject) -> None:
    """The host may resync at any time; the same state gives the same answers."""
    world = await shown(subject)
    pod = subject.pods[0]
    before = await decided(world, pod)
    world.generation += 1
    await world.transfer()
    same(before, await decided(world, pod), "the same answer")
