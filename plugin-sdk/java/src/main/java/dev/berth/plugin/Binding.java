package dev.berth.plugin;

import berth.plugin.v1.Common;
import berth.plugin.v1.Scheduling;
import com.google.protobuf.ByteString;
import com.google.protobuf.Duration;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.EnumSet;
import java.util.Set;
import java.util.function.Supplier;

/** The calls after a node was chosen: from the reservation to the attempt's end. */
final class Binding {
  private static final Set<Code> REFUSALS =
      EnumSet.of(Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING);
  private static final Set<Code> NO_PERMIT =
      EnumSet.of(Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE);

  private Binding() {}

  static Scheduling.ReserveResponse reserve(Asked asked, Scheduling.ReserveRequest request) {
    Pod pod = asked.pod();
    Node node = asked.session.node(request.getNodeName());
    Scheduling.ReserveResponse.Builder made = Scheduling.ReserveResponse.newBuilder();
    if (node == null) {
      return made.setStatus(gone(request.getNodeName())).build();
    }
    made.setStatus(Asked.SUCCESS).setSkipPreBind(!(asked.plugin instanceof Plugin.PreBind));
    if (asked.plugin instanceof Plugin.Reserve plugin) {
      Patched patched = patched(asked, "reserve", () -> plugin.reserve(pod, node));
      made.setStatus(patched.status);
      if (patched.patch != null) {
        made.setMetadataPatch(patched.patch);
      }
    }
    return made.build();
  }

  static Scheduling.UnreserveResponse unreserve(Asked asked, Scheduling.UnreserveRequest request) {
    if (asked.plugin instanceof Plugin.Reserve plugin) {
      PodKey key = PodKey.of(asked.head.getPod());
      ContractException.tell("unreserve", () -> plugin.unreserve(key, request.getNodeName()));
    }
    return Scheduling.UnreserveResponse.getDefaultInstance();
  }

  static Scheduling.PermitResponse permit(Asked asked, Scheduling.PermitRequest request) {
    Pod pod = asked.pod();
    Node node = asked.session.node(request.getNodeName());
    Scheduling.PermitResponse.Builder made = Scheduling.PermitResponse.newBuilder();
    if (node == null) {
      return made.setStatus(gone(request.getNodeName())).build();
    }
    if (!(asked.plugin instanceof Plugin.Permit plugin)) {
      return made.setStatus(Asked.SUCCESS).build();
    }
    try {
      Answer.ToPermit answer = ContractException.guarded("permit", () -> plugin.permit(pod, node));
      if (answer instanceof Wait wait) {
        made.setTimeout(duration(wait.timeout()));
        return made.setStatus(Common.Status.newBuilder().setCode(Code.WAIT.message)).build();
      }
      return made.setStatus(Packing.status((Status) answer, NO_PERMIT)).build();
    } catch (ContractException e) {
      return made.setStatus(asked.failure(e)).build();
    }
  }

  static Scheduling.PreBindResponse preBind(Asked asked, Scheduling.PreBindRequest request) {
    Pod pod = asked.pod();
    Node node = asked.session.node(request.getNodeName());
    Scheduling.PreBindResponse.Builder made = Scheduling.PreBindResponse.newBuilder();
    if (node == null) {
      return made.setStatus(gone(request.getNodeName())).build();
    }
    if (!(asked.plugin instanceof Plugin.PreBind plugin)) {
      return made.setStatus(Asked.SUCCESS).build();
    }
    Patched patched = patched(asked, "preBind", () -> plugin.preBind(pod, node));
    if (patched.patch != null) {
      made.setMetadataPatch(patched.patch);
    }
    return made.setStatus(patched.status).build();
  }

  /** A status, and metadata to be written, null if there is none. */
  private record Patched(Common.Status status, ByteString patch) {}

  private static Patched patched(Asked asked, String name, Supplier<Answer.ToReserve> function) {
    try {
      Answer.ToReserve answer = ContractException.guarded(name, function);
      if (answer instanceof MetadataPatch patch) {
        return new Patched(Asked.SUCCESS, ByteString.copyFrom(Json.write(patch)));
      }
      return new Patched(Packing.status((Status) answer, REFUSALS), null);
    } catch (ContractException e) {
      return new Patched(asked.failure(e), null);
    }
  }

  static Scheduling.BindResponse bind(Asked asked, Scheduling.BindRequest request) {
    Pod pod = asked.pod();
    Node node = asked.session.node(request.getNodeName());
    Common.Status status = Asked.SKIP;
    if (asked.plugin instanceof Plugin.Bind plugin) {
      status =
          asked.verdict(
              "bind",
              EnumSet.of(Code.SKIP),
              () ->
                  node == null
                      ? Status.error("node " + request.getNodeName() + " is gone")
                      : plugin.bind(pod, node, request.getAnnotationsMap()));
    }
    return Scheduling.BindResponse.newBuilder().setStatus(status).build();
  }

  static Scheduling.PostBindResponse postBind(Asked asked, Scheduling.PostBindRequest request) {
    if (asked.plugin instanceof Plugin.PostBind plugin) {
      PodKey key = PodKey.of(asked.head.getPod());
      ContractException.tell("postBind", () -> plugin.postBind(key, request.getNodeName()));
    }
    return Scheduling.PostBindResponse.getDefaultInstance();
  }

  /** What became of the attempt; a pod that will not be asked about again is forgotten. */
  static Scheduling.CycleDoneResponse cycleDone(Asked asked, Scheduling.CycleDoneRequest request) {
    int number = request.getOutcomeValue();
    CycleOutcome[] results = CycleOutcome.values();
    if (number < 1 || number > results.length) {
      throw CallException.invalid("outcome " + number + " is none");
    }
    Outcome outcome =
        new Outcome(results[number - 1], request.getNodeName(), request.getRejectedByPlugin());
    if (asked.plugin instanceof Plugin.CycleDone plugin) {
      PodKey key = PodKey.of(asked.head.getPod());
      ContractException.tell("cycleDone", () -> plugin.cycleDone(key, outcome));
    }
    if (outcome.result() == CycleOutcome.BOUND || outcome.result() == CycleOutcome.ABORTED) {
      asked.session.pods.forget(asked.head.getPod().getUid());
    }
    return Scheduling.CycleDoneResponse.getDefaultInstance();
  }

  private static Common.Status gone(String nodeName) {
    return Packing.status(Status.unschedulable("node " + nodeName + " is gone"), REFUSALS);
  }

  static Duration duration(java.time.Duration time) {
    return Duration.newBuilder().setSeconds(time.getSeconds()).setNanos(time.getNano()).build();
  }
}
