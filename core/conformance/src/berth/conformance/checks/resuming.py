"""State.Sync: streams that break and are opened again."""

from berth.conformance.answers import decided, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, Stream, shown
from berth.conformance.subject import PluginUnderTest, brief, skip
from berth_plugin_proto import state_pb2

CLAUSE = "State"


async def _reopened(host: HostState) -> Stream:
    """A second stream; skips where the plugin does not keep what it held."""
    stream = await Stream(host.subject).opened()
    if not stream.held.epoch:
        raise skip("the plugin keeps nothing when a stream ends")
    host.stream = stream
    return stream


@check("sync/held-again", "a new stream says what survived the last one", CLAUSE)
async def held_again(subject: PluginUnderTest) -> None:
    """What is held, or nothing; never anything else."""
    host = await shown(subject)
    await host.step()
    held = (await Stream(subject).opened()).held
    wanted = state_pb2.Held(epoch=host.epoch, generation=host.generation)
    expect(held in (wanted, state_pb2.Held()), f"{brief(wanted)} or nothing", brief(held))


@check("sync/resume", "a stream resumes from what is held", CLAUSE, after=("sync/held-again",))
async def resume(subject: PluginUnderTest) -> None:
    """The resumption is acknowledged, then deltas go on."""
    host = await shown(subject)
    stream = await _reopened(host)
    await stream.write(begin=state_pb2.Begin(epoch=host.epoch, resume_generation=host.generation))
    await stream.acked(host.generation)
    await host.step()


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
async def resume_early(subject: PluginUnderTest) -> None:
    """Steps that are held already are skipped."""
    host = await shown(subject)
    first = await host.step()
    stream = await _reopened(host)
    await stream.write(begin=state_pb2.Begin(epoch=host.epoch, resume_generation=1))
    await stream.acked(host.generation)
    await stream.write(delta=first)
    await stream.acked(host.generation)
    await host.step()


@check("sync/resume-unknown-epoch", "an unknown epoch can't be resumed", CLAUSE)
async def resume_unknown_epoch(subject: PluginUnderTest) -> None:
    """It ends in a full transfer, never in a wrong answer."""
    await shown(subject)
    stream = await Stream(subject).opened()
    await stream.write(begin=state_pb2.Begin(epoch="never-held", resume_generation=1))
    await stream.nacked(state_pb2.NACK_REASON_CANNOT_RESUME)


@check("sync/resume-ahead", "a generation that was never held can't be resumed", CLAUSE)
async def resume_ahead(subject: PluginUnderTest) -> None:
    """Steps would be missing."""
    host = await shown(subject)
    stream = await Stream(subject).opened()
    await stream.write(begin=state_pb2.Begin(epoch=host.epoch, resume_generation=host.generation + 7))
    await stream.nacked(state_pb2.NACK_REASON_CANNOT_RESUME)


@check(
    "sync/mid-cycle",
    "a transfer in the middle of an attempt changes no answer",
    CLAUSE,
    needs=("nodes",),
)
async def mid_cycle(subject: PluginUnderTest) -> None:
    """The host may resync at any time; the same state gives the same answers."""
    host = await shown(subject)
    pod = subject.pods[0]
    before = await decided(host, pod)
    host.generation += 1
    await host.transfer()
    same(before, await decided(host, pod), "the same answer")
