package dev.berth.plugin.testing;

import berth.plugin.v1.Common;
import berth.plugin.v1.GroupServiceGrpc;
import berth.plugin.v1.Identity;
import berth.plugin.v1.IdentityServiceGrpc;
import berth.plugin.v1.PlacementServiceGrpc;
import berth.plugin.v1.Queueing;
import berth.plugin.v1.QueueingServiceGrpc;
import berth.plugin.v1.Scheduling;
import berth.plugin.v1.SchedulingServiceGrpc;
import berth.plugin.v1.State;
import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;
import dev.berth.plugin.Answer;
import dev.berth.plugin.ClusterEvent;
import dev.berth.plugin.Code;
import dev.berth.plugin.MetadataPatch;
import dev.berth.plugin.Nomination;
import dev.berth.plugin.Outcome;
import dev.berth.plugin.Plugin;
import dev.berth.plugin.Reason;
import dev.berth.plugin.Server;
import dev.berth.plugin.SortKey;
import dev.berth.plugin.Status;
import dev.berth.plugin.Wait;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Pod;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/**
 * The scheduler's side, over a real socket, with a cluster of its own to show the plugin. Every
 * method sends the changes made to {@link #cluster} before it asks, and fails with AssertionError
 * where the plugin breaks the protocol.
 */
public final class Host implements AutoCloseable {
  /** The profile that is configured. */
  public static final String PROFILE = "default-scheduler";

  /**
   * How long an answer may take. The first one waits for a JVM that loads its classes, which takes
   * five seconds where ten programs share two cores.
   */
  static final long PATIENCE_SECONDS = 60;

  private static final int MAX_ALONE = 32;

  private static final AtomicInteger EPOCHS = new AtomicInteger();

  /** What the plugin is shown. */
  public final Cluster cluster = new Cluster();

  /**
   * Lists the indices of the nodes asked about, where a call names some, instead of sending a bit
   * for each node. A scheduler does so where they are few of many.
   */
  public boolean listsCandidates;

  /**
   * Asks about no node alone after all were asked about together: for plugins that count their
   * calls.
   */
  public boolean once;

  private boolean needsFeasible;

  private final Path folder;
  private final Server server;
  private final EventLoopGroup loops = new EpollEventLoopGroup(1);
  private final ManagedChannel channel;
  private final Map<String, Integer> attempts = new HashMap<>();
  private String epoch = "test-" + EPOCHS.incrementAndGet();
  private Stream stream;

  private Host(Plugin plugin) {
    try {
      folder = Files.createTempDirectory("berth-");
      server =
          new Server(
              plugin,
              "unix:" + socket(),
              Server.Options.fromEnvironment().withMetrics("").withGrace(Duration.ofSeconds(1)));
      server.start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    channel =
        NettyChannelBuilder.forAddress(new DomainSocketAddress(socket().toFile()))
            .eventLoopGroup(loops)
            .channelType(EpollDomainSocketChannel.class)
            .overrideAuthority("localhost")
            .usePlaintext()
            .build();
  }

  /** Serves the plugin in this process, and shows it the nodes. */
  public static Host of(Plugin plugin, Node... nodes) {
    return of(plugin, Map.of(), nodes);
  }

  /** Does so with arguments, anything that Jackson writes as their JSON. */
  public static Host of(Plugin plugin, Object arguments, Node... nodes) {
    Host host = new Host(plugin);
    try {
      List.of(nodes).forEach(host.cluster::putNode);
      List<String> problems = host.configure(arguments);
      if (!problems.isEmpty()) {
        throw new AssertionError("arguments: " + problems);
      }
      host.sync();
      return host;
    } catch (RuntimeException | AssertionError e) {
      host.close();
      throw e;
    }
  }

  /** Where the plugin is served. */
  public Path socket() {
    return folder.resolve("plugin.sock");
  }

  /** The channel to the plugin, for what has no method here. */
  public ManagedChannel channel() {
    return channel;
  }

  @Override
  public void close() {
    if (stream != null) {
      stream.close();
    }
    channel.shutdownNow();
    server.close();
    loops.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    try {
      Files.deleteIfExists(folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** What the plugin says of itself. */
  public Identity.HandshakeResponse handshake() {
    Identity.HandshakeRequest request =
        Identity.HandshakeRequest.newBuilder()
            .setHostName("berth.plugin.testing")
            .addSupportedVersions(1)
            .build();
    Identity.HandshakeResponse answer =
        IdentityServiceGrpc.newBlockingStub(channel).handshake(request);
    needsFeasible = answer.getCapabilities().getScoreNeedsFeasible();
    return answer;
  }

  /** Configures the profile, and gives what the plugin finds wrong. */
  public List<String> configure(Object arguments) {
    Identity.ConfigureRequest request =
        Identity.ConfigureRequest.newBuilder()
            .setProtocolVersion(1)
            .setProfile(PROFILE)
            .setArguments(Cluster.encoded(arguments))
            .build();
    return IdentityServiceGrpc.newBlockingStub(channel).configure(request).getErrorsList();
  }

  /** Opens the state stream and transfers everything, as a host does that starts over. */
  public void sync() {
    if (stream != null) {
      stream.close();
    }
    stream = new Stream(channel);
    stream.held();
    cluster.transfer(epoch).forEach(stream::send);
    stream.acknowledged(cluster.generation);
  }

  /** Transfers everything as another run of the host does. */
  public void syncAsAnotherRun() {
    epoch = "test-" + EPOCHS.incrementAndGet();
    sync();
  }

  /** Sends what changed in the cluster, if anything did. */
  public void update() {
    if (cluster.isChanged()) {
      stream.send(State.SyncRequest.newBuilder().setDelta(cluster.step()).build());
      stream.acknowledged(cluster.generation);
    }
  }

  /**
   * Has the plugin's clock stand at that time, to the microsecond; when its next timer is due, null
   * if none is. What is due by then runs first, each timer at its time.
   */
  public Instant setTime(Instant when) {
    long unixMicros = ChronoUnit.MICROS.between(Instant.EPOCH, when);
    State.Time.Builder time = State.Time.newBuilder().setUnixMicros(unixMicros);
    stream.send(State.SyncRequest.newBuilder().setTime(time).build());
    State.TimeReached reached = stream.reached(unixMicros);
    return reached.hasWakeAtUnixMicros()
        ? Instant.EPOCH.plus(reached.getWakeAtUnixMicros(), ChronoUnit.MICROS)
        : null;
  }

  /** Whether the pod may enter the queue. */
  public Status preEnqueue(Pod pod) {
    return status(
        stub()
            .preEnqueue(Scheduling.PreEnqueueRequest.newBuilder().setCall(call(pod)).build())
            .getStatus());
  }

  /**
   * Asks about all nodes, or those of these names: together, and about each alone as the scheduler
   * does once a node has changed.
   *
   * @throws AssertionError where the plugin failed, or a node's verdict is another one alone
   */
  public Verdict filter(Pod pod, String... nodeNames) {
    update();
    Verdict together = askToFilter(pod, nodeNames);
    for (String name : alone(nodeNames)) {
      same(name, together.about(name), askToFilter(pod, name).about(name));
    }
    return together;
  }

  /** What Filter says of the pod, a failure too. */
  public Status filterStatus(Pod pod) {
    update();
    return status(
        stub()
            .filter(Scheduling.FilterRequest.newBuilder().setCall(call(pod)).build())
            .getStatus());
  }

  private Verdict askToFilter(Pod pod, String... nodeNames) {
    Scheduling.FilterRequest.Builder request =
        Scheduling.FilterRequest.newBuilder().setCall(call(pod));
    if (nodeNames.length > 0) {
      request.setCandidates(candidates(List.of(nodeNames)));
    }
    return verdict(stub().filter(request.build()), List.of(nodeNames));
  }

  /**
   * The scores of all nodes, or of those of these names; empty for no opinion. Asks as {@link
   * #filter}; a plugin that scores feasible nodes only is asked about none alone.
   */
  public Map<String, Long> score(Pod pod, String... nodeNames) {
    update();
    Map<String, Long> together = askToScore(pod, nodeNames);
    if (!needsFeasible && !together.isEmpty()) {
      for (String name : alone(nodeNames)) {
        same(name, together.get(name), askToScore(pod, name).get(name));
      }
    }
    return together;
  }

  private Map<String, Long> askToScore(Pod pod, String... nodeNames) {
    Scheduling.ScoreRequest.Builder request =
        Scheduling.ScoreRequest.newBuilder().setCall(call(pod));
    if (nodeNames.length > 0) {
      request.setCandidates(candidates(List.of(nodeNames)));
    }
    List<String> asked = nodeNames.length > 0 ? List.of(nodeNames) : cluster.names;
    return scores(stub().score(request.build()), List.of(nodeNames), asked);
  }

  /** What Score says of the pod. */
  public Status scoreStatus(Pod pod) {
    update();
    return status(
        stub().score(Scheduling.ScoreRequest.newBuilder().setCall(call(pod)).build()).getStatus());
  }

  /** A verdict, and the scores of the nodes that pass. */
  public record FilterScore(Verdict verdict, Map<String, Long> scores) {}

  /** Asks both in one round trip, about all nodes or those of these names, as {@link #filter}. */
  public FilterScore filterScore(Pod pod, String... nodeNames) {
    update();
    FilterScore together = askForBoth(pod, nodeNames);
    for (String name : alone(nodeNames)) {
      FilterScore one = askForBoth(pod, name);
      same(name, together.verdict().about(name), one.verdict().about(name));
      same(name, together.scores().get(name), one.scores().get(name));
    }
    return together;
  }

  /** The nodes that are asked about one by one, of all that were asked about. */
  private List<String> alone(String... nodeNames) {
    List<String> names = nodeNames.length > 0 ? List.of(nodeNames) : cluster.names;
    return once ? List.of() : List.copyOf(names.subList(0, Math.min(names.size(), MAX_ALONE)));
  }

  private static void same(String name, Object together, Object alone) {
    if (!Objects.equals(together, alone)) {
      throw new AssertionError(
          name + " asked about alone: " + alone + ", and together with the others: " + together);
    }
  }

  private FilterScore askForBoth(Pod pod, String... nodeNames) {
    Scheduling.FilterScoreRequest.Builder request =
        Scheduling.FilterScoreRequest.newBuilder().setCall(call(pod));
    if (nodeNames.length > 0) {
      request.setCandidates(candidates(List.of(nodeNames)));
    }
    Scheduling.FilterScoreResponse response = stub().filterScore(request.build());
    List<String> names = List.of(nodeNames);
    Verdict verdict = verdict(response.getFilter(), names);
    Map<String, Long> scores =
        response.hasScore() ? scores(response.getScore(), names, verdict.passing()) : Map.of();
    return new FilterScore(verdict, scores);
  }

  /** Asks about one node as it would be without those pods; null if it passes. */
  public Reason filterWithout(Pod pod, String nodeName, Pod... removed) {
    update();
    Scheduling.Overlay.Builder overlay =
        Scheduling.Overlay.newBuilder().setNodeIndex(cluster.names.indexOf(nodeName));
    for (Pod each : removed) {
      overlay.addRemovedPodUids(each.getMetadata().getUid());
    }
    Scheduling.FilterOverlaysResponse response =
        stub()
            .filterOverlays(
                Scheduling.FilterOverlaysRequest.newBuilder()
                    .setCall(call(pod))
                    .addOverlays(overlay)
                    .build());
    int code = response.getVerdicts().getEach().byteAt(0) & 0xff;
    return code == 0 ? null : reason(response.getVerdicts().getReasons(code - 1));
  }

  /** Asks for room, where every node was turned down for that reason. */
  public Answer.ToPostFilter postFilter(Pod pod, Reason reason) {
    update();
    Common.Reason.Builder row =
        Common.Reason.newBuilder()
            .setCode(Common.Code.valueOf("CODE_" + reason.code()))
            .setText(reason.text());
    Scheduling.PostFilterResponse response =
        stub()
            .postFilter(
                Scheduling.PostFilterRequest.newBuilder()
                    .setCall(call(pod))
                    .setVerdicts(Scheduling.Verdicts.newBuilder().setAll(1).addReasons(row))
                    .build());
    return response.hasNominatedNodeName()
        ? new Nomination(response.getNominatedNodeName(), response.getVictimUidsList())
        : status(response.getStatus());
  }

  /** Reserves as the pod's present attempt. */
  public Answer.ToReserve reserve(Pod pod, String nodeName) {
    update();
    Scheduling.ReserveResponse response =
        stub()
            .reserve(
                Scheduling.ReserveRequest.newBuilder()
                    .setCall(call(pod))
                    .setNodeName(nodeName)
                    .build());
    return response.hasMetadataPatch()
        ? patch(response.getMetadataPatch())
        : status(response.getStatus());
  }

  /** Takes the attempt back; the next one has a new number. */
  public void unreserve(Pod pod, String nodeName) {
    Scheduling.UnreserveRequest request =
        Scheduling.UnreserveRequest.newBuilder().setCall(call(pod)).setNodeName(nodeName).build();
    stub().unreserve(request);
    attempts.merge(pod.getMetadata().getUid(), 2, (known, first) -> known + 1);
  }

  /** Asks for leave to bind. */
  public Answer.ToPermit permit(Pod pod, String nodeName) {
    update();
    Scheduling.PermitResponse response =
        stub()
            .permit(
                Scheduling.PermitRequest.newBuilder()
                    .setCall(call(pod))
                    .setNodeName(nodeName)
                    .build());
    return response.hasTimeout()
        ? new Wait(
            Duration.ofSeconds(
                response.getTimeout().getSeconds(), response.getTimeout().getNanos()))
        : status(response.getStatus());
  }

  /** What the plugin wants written before the pod is bound, or its status. */
  public Answer.ToReserve preBind(Pod pod, String nodeName) {
    update();
    Scheduling.PreBindResponse response =
        stub()
            .preBind(
                Scheduling.PreBindRequest.newBuilder()
                    .setCall(call(pod))
                    .setNodeName(nodeName)
                    .build());
    return response.hasMetadataPatch()
        ? patch(response.getMetadataPatch())
        : status(response.getStatus());
  }

  /** Has the plugin bind the pod. */
  public Status bind(Pod pod, String nodeName, Map<String, String> annotations) {
    update();
    return status(
        stub()
            .bind(
                Scheduling.BindRequest.newBuilder()
                    .setCall(call(pod))
                    .setNodeName(nodeName)
                    .putAllAnnotations(annotations)
                    .build())
            .getStatus());
  }

  /** Says that the pod was bound. */
  public void postBind(Pod pod, String nodeName) {
    Scheduling.PostBindRequest request =
        Scheduling.PostBindRequest.newBuilder().setCall(call(pod)).setNodeName(nodeName).build();
    stub().postBind(request);
  }

  /** Says how the attempt ended. */
  public void cycleDone(Pod pod, Outcome outcome) {
    Scheduling.CycleDoneRequest request =
        Scheduling.CycleDoneRequest.newBuilder()
            .setCall(call(pod))
            .setOutcome(Scheduling.CycleOutcome.valueOf("CYCLE_OUTCOME_" + outcome.result()))
            .setNodeName(outcome.nodeName())
            .setRejectedByPlugin(outcome.rejected())
            .build();
    stub().cycleDone(request);
  }

  /** For each event, whether each pod is worth another attempt. */
  public boolean[][] hints(List<Pod> pods, ClusterEvent... events) {
    Queueing.QueueingHintsRequest.Builder request =
        Queueing.QueueingHintsRequest.newBuilder().setProfile(PROFILE);
    for (ClusterEvent event : events) {
      Queueing.ClusterEvent.Builder row =
          request
              .addEventsBuilder()
              .setResource(event.resource())
              .setAction(Identity.ActionType.valueOf("ACTION_TYPE_" + event.action()));
      event.before(JsonNode.class).ifPresent(old -> row.setOldObject(Cluster.encoded(old)));
      event.after(JsonNode.class).ifPresent(now -> row.setNewObject(Cluster.encoded(now)));
    }
    pods.forEach(pod -> request.addPods(call(pod).getPod()));
    Queueing.QueueingHintsResponse response =
        QueueingServiceGrpc.newBlockingStub(channel).queueingHints(request.build());
    boolean[][] table = new boolean[events.length][pods.size()];
    for (int row = 0; row < events.length; row++) {
      Queueing.Hint hint = response.getHints(row);
      for (int column = 0; column < pods.size(); column++) {
        table[row][column] =
            hint.hasPods()
                ? (hint.getPods().byteAt(column / 8) >> (column % 8) & 1) == 1
                : hint.getAll();
      }
    }
    return table;
  }

  /** Where these pods stand in the queue. */
  public List<SortKey> sortKeys(Pod... pods) {
    Queueing.SortKeysRequest.Builder request = Queueing.SortKeysRequest.newBuilder();
    List.of(pods).forEach(pod -> request.addPods(call(pod).getPod()));
    return sorted(request).stream().map(key -> new SortKey(key.getPartsList())).toList();
  }

  /** Says that pods wait no more, by UID. */
  public void podsLeft(String... uids) {
    sorted(Queueing.SortKeysRequest.newBuilder().addAllLeftUids(List.of(uids)));
  }

  /** Says that all pods will be asked about anew. */
  public void queueReset() {
    sorted(Queueing.SortKeysRequest.newBuilder().setAnew(true));
  }

  private List<Queueing.SortKey> sorted(Queueing.SortKeysRequest.Builder request) {
    return QueueingServiceGrpc.newBlockingStub(channel)
        .sortKeys(request.setProfile(PROFILE).build())
        .getKeysList();
  }

  /** A pod group of that name, to ask about. */
  public Group group(String name, Pod... pods) {
    return new Group(this, name, List.of(pods));
  }

  /** Opens the stream on which the plugin speaks, and returns when it is heard. */
  public Iterator<Said> listen() {
    return new Voice(channel);
  }

  /** The head of a call about the pod's present attempt. */
  public Common.Call call(Pod pod) {
    Common.PodRef.Builder ref =
        Common.PodRef.newBuilder()
            .setUid(pod.getMetadata().getUid())
            .setNamespace(pod.getMetadata().getNamespace())
            .setName(pod.getMetadata().getName())
            .setAttempt(attempts.getOrDefault(pod.getMetadata().getUid(), 1))
            .setObject(Cluster.encoded(pod));
    return Common.Call.newBuilder()
        .setEpoch(epoch)
        .setGeneration(cluster.generation)
        .setProfile(PROFILE)
        .setPod(ref)
        .build();
  }

  SchedulingServiceGrpc.SchedulingServiceBlockingStub stub() {
    return SchedulingServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(PATIENCE_SECONDS, TimeUnit.SECONDS);
  }

  PlacementServiceGrpc.PlacementServiceBlockingStub placement() {
    return PlacementServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(PATIENCE_SECONDS, TimeUnit.SECONDS);
  }

  GroupServiceGrpc.GroupServiceBlockingStub groups() {
    return GroupServiceGrpc.newBlockingStub(channel)
        .withDeadlineAfter(PATIENCE_SECONDS, TimeUnit.SECONDS);
  }

  private Scheduling.Candidates candidates(List<String> nodeNames) {
    Scheduling.Candidates.Builder made = Scheduling.Candidates.newBuilder();
    if (!listsCandidates) {
      return made.setBitmap(bitmap(nodeNames)).build();
    }
    ByteBuffer packed = ByteBuffer.allocate(Integer.BYTES * nodeNames.size());
    packed.order(ByteOrder.LITTLE_ENDIAN);
    nodeNames.stream().map(cluster.names::indexOf).sorted().forEach(packed::putInt);
    return made.setIndices(ByteString.copyFrom(packed.flip())).build();
  }

  /** The bits of the nodes of these names. */
  ByteString bitmap(List<String> nodeNames) {
    byte[] packed = new byte[(cluster.names.size() + 7) / 8];
    IntStream.range(0, cluster.names.size())
        .filter(at -> nodeNames.contains(cluster.names.get(at)))
        .forEach(at -> packed[at >> 3] |= (byte) (1 << (at & 7)));
    return ByteString.copyFrom(packed);
  }

  /** The names behind the entries of an answer. */
  private List<String> entries(List<String> asked) {
    return listsCandidates && !asked.isEmpty()
        ? cluster.names.stream().filter(asked::contains).toList()
        : cluster.names;
  }

  private Verdict verdict(Scheduling.FilterResponse response, List<String> asked) {
    Status status = status(response.getStatus());
    if (status.code() == Code.ERROR) {
      throw new AssertionError("Filter answered ERROR: " + String.join("; ", status.reasons()));
    }
    Scheduling.Verdicts verdicts = response.getVerdicts();
    if (response.hasVerdicts() != status.equals(Status.SUCCESS)) {
      throw new AssertionError("verdicts go with a success and nothing else: " + response);
    }
    Map<String, Reason> rejected = new LinkedHashMap<>();
    List<String> passing = new ArrayList<>();
    List<String> entries = entries(asked);
    hasLength(verdicts.hasEach() ? verdicts.getEach().size() : entries.size(), entries);
    boolean fits = status.equals(Status.SUCCESS) || status.equals(Status.SKIP);
    for (int i = 0; i < entries.size(); i++) {
      int code = verdicts.hasEach() ? verdicts.getEach().byteAt(i) & 0xff : 0;
      if (code > 0) {
        rejected.put(entries.get(i), reason(verdicts.getReasons(code - 1)));
      } else if (fits && (asked.isEmpty() || asked.contains(entries.get(i)))) {
        passing.add(entries.get(i));
      }
    }
    return new Verdict(status, passing, rejected);
  }

  private static void hasLength(int found, List<String> entries) {
    if (found != entries.size()) {
      throw new AssertionError("expected " + entries.size() + " entries, got " + found);
    }
  }

  private Map<String, Long> scores(
      Scheduling.ScoreResponse response, List<String> asked, List<String> wanted) {
    Status status = status(response.getStatus());
    if (status.equals(Status.SKIP)) {
      return Map.of();
    }
    if (!status.equals(Status.SUCCESS)) {
      throw new AssertionError("Score: " + status);
    }
    Map<String, Long> scores = new LinkedHashMap<>();
    List<String> entries = entries(asked);
    hasLength(length(response.getScores(), entries.size()), entries);
    for (int i = 0; i < entries.size(); i++) {
      if (wanted.contains(entries.get(i))) {
        scores.put(entries.get(i), number(response.getScores(), i));
      }
    }
    return scores;
  }

  private static int length(Scheduling.Scores scores, int ofAll) {
    return switch (scores.getValuesCase()) {
      case UINT8 -> scores.getUint8().size();
      case INT32 -> scores.getInt32().size() / Integer.BYTES;
      case INT64 -> scores.getInt64().size() / Long.BYTES;
      default -> ofAll;
    };
  }

  static long number(Scheduling.Scores scores, int index) {
    return switch (scores.getValuesCase()) {
      case UINT8 -> scores.getUint8().byteAt(index) & 0xff;
      case INT32 -> little(scores.getInt32()).getInt(Integer.BYTES * index);
      case INT64 -> little(scores.getInt64()).getLong(Long.BYTES * index);
      default -> scores.getAll();
    };
  }

  private static ByteBuffer little(ByteString bytes) {
    return bytes.asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
  }

  static Status status(Common.Status message) {
    return new Status(
        dev.berth.plugin.Code.valueOf(message.getCode().name().replace("CODE_", "")),
        message.getReasonsList());
  }

  private static Reason reason(Common.Reason message) {
    return new Reason(
        dev.berth.plugin.Code.valueOf(message.getCode().name().replace("CODE_", "")),
        message.getText());
  }

  private static MetadataPatch patch(ByteString json) {
    try {
      com.fasterxml.jackson.databind.ObjectMapper mapper =
          new com.fasterxml.jackson.databind.ObjectMapper();
      return mapper.readValue(json.toByteArray(), MetadataPatch.class);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
