package dev.berth.plugin;

import berth.plugin.v1.Common;
import berth.plugin.v1.Identity;
import berth.plugin.v1.Scheduling;
import berth.plugin.v1.State;
import berth.plugin.v1.Ttrpc.TtrpcRequest;
import com.google.protobuf.ByteString;
import io.fabric8.kubernetes.api.model.Pod;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Calls about a cluster that is made up, answered before the plugin is served. The JVM loads and
 * compiles on the way what every call passes through; otherwise the scheduler's first hundred calls
 * would wait for that, and share their cores with it. The author's methods are not called.
 */
final class WarmUp {
  /** The JVM compiles what was called some hundred times; what follows would only cost time. */
  private static final int CALLS = 500;

  private static final int NODES = 100;
  private static final String NAME = "warm-up";
  private static final AtomicBoolean BEGUN = new AtomicBoolean();

  private static final ByteString NODE =
      ByteString.copyFromUtf8(
          """
          {"metadata": {"name": "n", "uid": "n", "labels": {"kubernetes.io/hostname": "n"},
           "annotations": {"example.com/a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
           "spec": {"podCIDR": "10.0.0.0/24", "taints": [{"key": "a", "effect": "NoSchedule"}]},
           "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"architecture": "amd64", "operatingSystem": "linux"}}}
          """);

  private static final ByteString POD =
      ByteString.copyFromUtf8(
          """
          {"metadata": {"name": "p", "namespace": "default", "uid": "p", "labels": {"app": "a"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r"}]},
           "spec": {"schedulerName": "default-scheduler", "priority": 0,
            "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}],
              "env": [{"name": "A", "value": "b"}],
              "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
              "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}]},
           "status": {"phase": "Pending", "qosClass": "Burstable"}}
          """);

  /** Turns down every second node, and scores the others. */
  private static final class Example implements Plugin.FilterNodes, Plugin.ScoreNodes {
    private static final Reason SECOND = Reason.of("node(s) were the second");

    @Override
    public Traits traits() {
      return Traits.named(NAME).pods();
    }

    @Override
    public Verdicts filterNodes(Pod pod, Nodes nodes) {
      Verdicts verdicts = new Verdicts(nodes.size());
      for (int at = 0; at < nodes.size(); at += 2) {
        verdicts.reject(at, SECOND);
      }
      return verdicts;
    }

    @Override
    public long[] scoreNodes(Pod pod, Nodes nodes) {
      return new long[nodes.size()];
    }
  }

  final Session session;
  private final Ttrpc ttrpc;

  WarmUp() throws IOException {
    Example example = new Example();
    Traits traits = example.traits();
    session = new Session(example, traits, new Meter(NAME, ""), ready -> {});
    session.configure(
        Identity.ConfigureRequest.newBuilder().setProtocolVersion(1).setProfile(NAME).build());
    List<Step> steps = new ArrayList<>();
    for (int at = 0; at < NODES; at++) {
      State.NodeUpsert node =
          State.NodeUpsert.newBuilder().setIndex(at).setName("n" + at).setObject(NODE).build();
      steps.addAll(session.steps(List.of(State.Change.newBuilder().setNodeUpsert(node).build())));
    }
    State.Commit commit = State.Commit.newBuilder().setGeneration(1).setNodeCount(NODES).build();
    session.mirror.replace(NAME, commit, steps);
    ttrpc = new Ttrpc(new Answering(session, Tracing.of(traits, Map.of())), null, null);
  }

  /** Answers the calls, unless that was done in this process before. */
  static void once() throws IOException {
    if (BEGUN.getAndSet(true)) {
      return;
    }
    WarmUp warmUp = new WarmUp();
    for (int call = 0; call < CALLS; call++) {
      warmUp.answer(call);
    }
  }

  /** A question about a pod, with the step of the state that the pod before it made. */
  ByteBuffer answer(int number) throws IOException {
    State.PodUpsert assumed =
        State.PodUpsert.newBuilder()
            .setUid("p" + (number - 1))
            .setNodeName("n0")
            .setStage(State.PodStage.POD_STAGE_ASSUMED)
            .setObject(POD)
            .build();
    State.Delta step =
        State.Delta.newBuilder()
            .setBaseGeneration(number + 1)
            .setGeneration(number + 2)
            .setNodeCount(NODES)
            .addChanges(State.Change.newBuilder().setPodUpsert(assumed))
            .build();
    Common.PodRef pod =
        Common.PodRef.newBuilder().setUid("p" + number).setAttempt(1).setObject(POD).build();
    Common.Call head =
        Common.Call.newBuilder()
            .setEpoch(NAME)
            .setGeneration(step.getGeneration())
            .addDeltas(step)
            .setProfile(NAME)
            .setPod(pod)
            .build();
    Scheduling.FilterScoreRequest question =
        Scheduling.FilterScoreRequest.newBuilder().setCall(head).build();
    TtrpcRequest request =
        TtrpcRequest.newBuilder()
            .setService("berth.plugin.v1.SchedulingService")
            .setMethod("FilterScore")
            .setPayload(question.toByteString())
            .build();
    byte[] sent = request.toByteArray();
    return ttrpc.frame(1, TtrpcRequest.parseFrom(sent), Patience.nanos(1_000_000_000L), () -> {});
  }
}
