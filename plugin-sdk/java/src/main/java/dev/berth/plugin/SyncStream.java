package dev.berth.plugin;

import berth.plugin.v1.State;
import berth.plugin.v1.State.SyncRequest;
import berth.plugin.v1.State.SyncResponse;
import io.grpc.stub.StreamObserver;
import java.util.ArrayList;
import java.util.List;

/**
 * One Sync stream's place in the protocol. The stream opened last is the one that counts; older
 * ones end.
 *
 * <pre>
 * waiting for Begin --begin, full--> transferring --commit--> following
 *        |   ^                                                 |  ^
 *        |   +------------------- Nack ------------------------+  |
 *        +-----------------------begin, resume--------------------+
 * </pre>
 */
final class SyncStream implements StreamObserver<SyncRequest> {
  private static final System.Logger LOG = System.getLogger("berth");

  /** So many objects are worth a collection of their own. */
  private static final int LARGE_TRANSFER = 1_000;

  private final Session session;
  private final Patience patience;
  private final StreamObserver<SyncResponse> responses;
  private Stage stage = Stage.WAITING;
  private String epoch = "";
  private List<Step> steps = new ArrayList<>();
  private boolean ended;

  /** Whether the host has said the time on this stream. */
  private boolean timed;

  private enum Stage {
    WAITING,
    TRANSFERRING,
    FOLLOWING
  }

  SyncStream(Session session, Patience patience, StreamObserver<SyncResponse> responses) {
    this.session = session;
    this.patience = patience;
    this.responses = responses;
  }

  /** Makes this stream the one that counts, and says what is held. */
  void open() {
    Place here = new Place(session.line, null);
    here.enter(patience);
    try {
      if (session.stream != null) {
        session.stream.end(
            new CallException(io.grpc.Status.Code.ABORTED, "a newer Sync stream was opened"));
      }
      session.stream = this;
      State.Held.Builder held = State.Held.newBuilder();
      held.setEpoch(session.mirror.epoch).setGeneration(session.mirror.generation);
      send(SyncResponse.newBuilder().setHeld(held).build());
    } finally {
      here.leave();
    }
  }

  @Override
  public void onNext(SyncRequest request) {
    List<Step> decoded = List.of();
    SyncException problem = null;
    try {
      if (request.hasChunk() && stage == Stage.TRANSFERRING) { // outside the line
        decoded = Step.of(request.getChunk().getChangesList(), (uid, object) -> pod(object));
      }
    } catch (SyncException e) {
      problem = e;
    }
    Place here = new Place(session.line, null);
    try {
      here.enter(patience);
      if (session.stream == this) {
        answer(request, decoded, problem);
      }
    } catch (CallException e) {
      end(e);
    } finally {
      here.leave();
    }
  }

  private static io.fabric8.kubernetes.api.model.Pod pod(com.google.protobuf.ByteString object) {
    return Json.read(object.toByteArray(), io.fabric8.kubernetes.api.model.Pod.class);
  }

  private void answer(SyncRequest request, List<Step> decoded, SyncException problem) {
    long before = session.mirror.generation;
    try {
      if (problem != null) {
        throw problem;
      }
      if (request.hasTime() && session.traits.clock != null) {
        reach(request.getTime().getUnixMicros());
      } else if (take(request, decoded)) {
        State.Ack.Builder ack = State.Ack.newBuilder().setGeneration(session.mirror.generation);
        send(SyncResponse.newBuilder().setAck(ack).build());
      }
    } catch (SyncException e) {
      refuse(request, e);
    }
    if (session.mirror.generation != before) {
      session.announce();
    }
  }

  private void reach(long unixMicros) {
    timed = true;
    Long wake = session.traits.clock.reach(unixMicros);
    State.TimeReached.Builder reached = State.TimeReached.newBuilder().setUnixMicros(unixMicros);
    if (wake != null) {
      reached.setWakeAtUnixMicros(wake);
    }
    if (session.traits.requeue != null) {
      reached.setLastRequeue(session.traits.requeue.lastNumber());
    }
    send(SyncResponse.newBuilder().setTimeReached(reached).build());
  }

  /** Takes one message; true where a generation is to be acknowledged. */
  private boolean take(SyncRequest request, List<Step> decoded) {
    if (request.hasBegin()) {
      return begin(request.getBegin());
    } else if (request.hasChunk() && stage == Stage.TRANSFERRING) {
      steps.addAll(decoded);
      return false;
    } else if (request.hasCommit() && stage == Stage.TRANSFERRING) {
      commit(request.getCommit());
      return true;
    } else if (request.hasDelta() && stage == Stage.FOLLOWING) {
      session.mirror.follow(request.getDelta(), session::steps);
      return true;
    }
    throw SyncException.outOfOrder(
        request.getBodyCase() + " does not belong into the stage " + stage);
  }

  private boolean begin(State.Begin begin) {
    if (begin.getEpoch().isEmpty()) {
      throw SyncException.outOfOrder("an epoch needs a name");
    }
    if (session.traits.clock != null && !timed) {
      session.traits.clock.own();
    }
    epoch = begin.getEpoch();
    steps = new ArrayList<>();
    if (!begin.hasResumeGeneration()) {
      stage = Stage.TRANSFERRING;
      return false;
    }
    Mirror held = session.mirror;
    long from = begin.getResumeGeneration();
    if (!epoch.equals(held.epoch) || from <= 0 || from > held.generation) {
      throw new SyncException(
          State.NackReason.NACK_REASON_CANNOT_RESUME,
          held.generation + " of epoch \"" + held.epoch + "\" is held");
    }
    stage = Stage.FOLLOWING;
    return true;
  }

  private void commit(State.Commit commit) {
    if (commit.getGeneration() < 1) {
      throw SyncException.outOfOrder("generations start at 1");
    }
    int brought = steps.size();
    session.mirror.replace(epoch, commit, steps);
    stage = Stage.FOLLOWING;
    steps = new ArrayList<>();
    if (brought >= LARGE_TRANSFER) {
      // What a transfer brings stays for long. Left where it was allocated, it is copied by the
      // next collections, each of which stops some call for tens of milliseconds; here no call is
      // answered yet.
      System.gc();
    }
  }

  /** Holds nothing from now on, and says why. */
  private void refuse(SyncRequest request, SyncException problem) {
    LOG.log(System.Logger.Level.WARNING, "state refused: {0}", problem.getMessage());
    session.meter.refused(problem.reason.name().replace("NACK_REASON_", ""));
    session.mirror.drop();
    stage = Stage.WAITING;
    steps = new ArrayList<>();
    long generation =
        request.hasCommit()
            ? request.getCommit().getGeneration()
            : request.getDelta().getGeneration();
    State.Nack.Builder nack = State.Nack.newBuilder().setGeneration(generation);
    nack.setReason(problem.reason).setMessage(problem.getMessage());
    send(SyncResponse.newBuilder().setNack(nack).build());
  }

  private synchronized void send(SyncResponse response) {
    if (!ended) {
      responses.onNext(response);
    }
  }

  /** Ends the stream, with that error or without one. */
  synchronized void end(CallException problem) {
    if (ended) {
      return;
    }
    ended = true;
    if (problem == null) {
      responses.onCompleted();
    } else {
      responses.onError(problem.forGrpc());
    }
  }

  @Override
  public synchronized void onError(Throwable problem) {
    ended = true;
  }

  @Override
  public void onCompleted() {
    end(null);
  }
}
