"""What holds for every scheduling call: profile, epoch, generation and pod."""

import asyncio

import grpc

from berth.conformance.answers import filtered, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import shown
from berth.conformance.samples import renamed
from berth.conformance.subject import PluginUnderTest, fails, refused, skip

CLAUSE = "Scheduling calls"
NEEDS = ("FILTER", "nodes")


@check("calls/generation", "the answer says which generation it is about", CLAUSE, needs=NEEDS)
async def generation(subject: PluginUnderTest) -> None:
    """The one asked for; a later one only where that is held."""
    host = await shown(subject)
    await host.step()
    came = (await host.ask("Filter", subject.pods[0])).generation
    expect(came == host.generation, f"generation {host.generation}", came)


@check("calls/deltas", "a call's own deltas are applied", CLAUSE, needs=NEEDS, after=("calls/generation",))
async def deltas(subject: PluginUnderTest) -> None:
    """They spare a wait for the stream."""
    host = await shown(subject)
    carried = host.delta(host.put_node(renamed(host.nodes[0], "carried")))
    answer = await host.ask("Filter", subject.pods[0], of_call={"deltas": [carried]})
    expect(answer.generation == host.generation, f"generation {host.generation}", answer.generation)


@check(
    "calls/deltas-again",
    "a step that a call brought may come on the stream too",
    CLAUSE,
    needs=NEEDS,
    after=(
        "calls/deltas",
        "sync/repeated-delta",
    ),
)
async def deltas_again(subject: PluginUnderTest) -> None:
    """It is skipped, and acknowledged."""
    host = await shown(subject)
    carried = host.delta(host.put_node(renamed(host.nodes[0], "carried")))
    await host.ask("Filter", subject.pods[0], of_call={"deltas": [carried]})
    await host.stream.write(delta=carried)
    await host.stream.acked(host.generation)


@check(
    "calls/held-deltas",
    "deltas that are held already are skipped in a call",
    CLAUSE,
    needs=NEEDS,
    after=("calls/generation",),
)
async def held_deltas(subject: PluginUnderTest) -> None:
    """The host may not know yet what is held."""
    host = await shown(subject)
    step = await host.step(host.put_node(renamed(host.nodes[0], "held")))
    before = await filtered(host, subject.pods[0])
    same(before, await filtered(host, subject.pods[0], of_call={"deltas": [step]}), "the same answer")


@check(
    "calls/waits",
    "a call for a generation that is on its way waits for it",
    CLAUSE,
    needs=NEEDS,
    after=("calls/generation",),
)
async def waits(subject: PluginUnderTest) -> None:
    """Up to its deadline, and is then answered."""
    host = await shown(subject)
    coming = host.delta()
    request = host.request("Filter", subject.pods[0])
    waiting = subject.scheduling.Filter(request, timeout=subject.options.seconds)
    subject.open.callback(waiting.cancel)
    # Calls for what is held give the plugin time to read the one before them.
    for pod in subject.pods:
        await host.ask("Filter", pod, of_call={"generation": 1})
    expect(not waiting.done(), "a call that waits for the stream", "an end of the call before that")
    await host.stream.write(delta=coming)
    await host.stream.acked(coming.generation)
    came = (await subject.in_time(waiting, "an answer once the step has come")).generation
    expect(came == coming.generation, f"generation {coming.generation}", came)


@check(
    "calls/later-generation",
    "a call is answered from a later generation with the same nodes",
    CLAUSE,
    needs=NEEDS,
    after=("calls/generation",),
)
async def later_generation(subject: PluginUnderTest) -> None:
    """As long as no node has changed its index since."""
    host = await shown(subject)
    await host.step(host.put_pod(renamed(subject.pods[-1], "later"), (host.names or [""])[0]))
    await host.ask("Filter", subject.pods[0], of_call={"generation": 1})


@check(
    "calls/generation-gone",
    "a call for node indices that have changed is refused",
    CLAUSE,
    needs=(*NEEDS, "nodes"),
)
async def generation_gone(subject: PluginUnderTest) -> None:
    """The host repeats it with its newest generation."""
    host = await shown(subject)
    await host.step(host.drop_node(0))
    call = host.ask("Filter", subject.pods[0], of_call={"generation": 1})
    await refused(call, grpc.StatusCode.FAILED_PRECONDITION, "GENERATION_GONE", what="a call for old indices")


@check("calls/unknown-epoch", "a call of an unknown epoch is refused", CLAUSE, needs=NEEDS)
async def unknown_epoch(subject: PluginUnderTest) -> None:
    """The plugin has another state than the host means."""
    host = await shown(subject)
    call = host.ask("Filter", subject.pods[0], of_call={"epoch": "never-used"})
    await refused(call, grpc.StatusCode.FAILED_PRECONDITION, "NOT_SYNCED", what="a call of an unknown epoch")


@check("calls/unknown-pod", "a pod that was never sent is asked for", CLAUSE, needs=NEEDS)
async def unknown_pod(subject: PluginUnderTest) -> None:
    """The host repeats the call with the pod's object."""
    _skip_where_no_pod_is_read(subject)
    host = await shown(subject)
    pod = renamed(subject.pods[0], f"never-sent-{host.epoch}")
    call = host.ask("Filter", pod, of_call={"with_object": False})
    await refused(
        call, grpc.StatusCode.FAILED_PRECONDITION, "POD_UNKNOWN", what="a call without the pod's object"
    )


def _skip_where_no_pod_is_read(subject: PluginUnderTest) -> None:
    """Raises: UnsuitableError where the answer is the same for all pods: the plugin needs no object."""
    if subject.offers("pod_fields") and not subject.capabilities.pod_fields.paths:
        raise skip("pod_fields is empty: the plugin reads nothing of pods")


@check("calls/pod-left-out", "a later call of an attempt may leave the pod out", CLAUSE, needs=NEEDS)
async def pod_left_out(subject: PluginUnderTest) -> None:
    """It is answered alike, or the pod is asked for."""
    host = await shown(subject)
    before = await filtered(host, subject.pods[0])
    try:
        again = await filtered(host, subject.pods[0], of_call={"with_object": False})
    except grpc.aio.AioRpcError:
        call = host.ask("Filter", subject.pods[0], of_call={"with_object": False})
        await refused(
            call, grpc.StatusCode.FAILED_PRECONDITION, "POD_UNKNOWN", what="a call without the pod's object"
        )
    else:
        same(before, again, "the same answer")


@check(
    "calls/pod-sent-again",
    "a pod that changed is answered for as it is now",
    CLAUSE,
    needs=NEEDS,
)
async def pod_sent_again(subject: PluginUnderTest) -> None:
    """Another attempt brings another object under the same UID."""
    host = await shown(subject)
    one, other = subject.pods[0], subject.pods[-1]
    wanted = await filtered(host, other)
    changed = {**other, "metadata": {**other["metadata"], "uid": one["metadata"]["uid"]}}
    await filtered(host, one)
    same(wanted, await filtered(host, changed, of_call={"attempt": 2}), "the answer for the pod as it is now")


@check("calls/bad-pod", "a pod that can't be decoded is an error of that call", CLAUSE, needs=NEEDS)
async def bad_pod(subject: PluginUnderTest) -> None:
    """The plugin goes on."""
    _skip_where_no_pod_is_read(subject)
    host = await shown(subject)
    request = host.request("Filter", subject.pods[0])
    request.call.pod.object = b'{"metadata": ['
    seconds = subject.options.seconds
    code = await fails(subject.scheduling.Filter(request, timeout=seconds), "a pod that is no JSON")
    wanted = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL)
    expect(code in wanted, "INVALID_ARGUMENT or INTERNAL", code.name)
    await host.ask("Filter", subject.pods[0])


@check("calls/side-by-side", "calls may come side by side", CLAUSE, needs=NEEDS)
async def side_by_side(subject: PluginUnderTest) -> None:
    """Each is answered for its own pod."""
    host = await shown(subject)
    apart = [await filtered(host, pod) for pod in subject.pods]
    together = await asyncio.gather(*(filtered(host, pod) for pod in subject.pods))
    same(apart, together, "the answers as one by one")


@check(
    "calls/waiting-blocks-no-other",
    "a call that waits holds up no other",
    CLAUSE,
    needs=NEEDS,
    after=("calls/waits",),
)
async def waiting_holds_up_no_other_call(subject: PluginUnderTest) -> None:
    """Not even once it was given up."""
    host = await shown(subject)
    request = host.request("Filter", subject.pods[0], of_call={"generation": 99})
    waiting = subject.scheduling.Filter(request, timeout=subject.options.seconds)
    await host.ask("Filter", subject.pods[0])
    waiting.cancel()
    await host.ask("Filter", subject.pods[0])
