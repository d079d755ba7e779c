package dev.berth.plugin;

import berth.plugin.v1.Common;
import io.fabric8.kubernetes.api.model.Pod;
import io.opentelemetry.api.trace.Span;
import java.util.Set;
import java.util.function.Supplier;

/** One call on its way through the author's methods. */
final class Asked {
  static final Common.Status SUCCESS =
      Common.Status.newBuilder().setCode(Common.Code.CODE_SUCCESS).build();
  static final Common.Status SKIP =
      Common.Status.newBuilder().setCode(Common.Code.CODE_SKIP).build();

  final Session session;
  final Plugin plugin;
  final Common.Call head;
  private final Place here;
  private final Patience patience;
  private final Span span;

  Asked(Session session, Common.Call head, Place here, Patience patience, Span span) {
    this.session = session;
    this.plugin = session.plugin;
    this.head = head;
    this.here = here;
    this.patience = patience;
    this.span = span;
  }

  /** Catches up with the call's generation and gives its pod. */
  Pod pod() {
    session.catchUp(head, here, patience);
    return session.pod(head.getPod());
  }

  /** Calls a method that gives a status, and packs what comes back. */
  Common.Status verdict(String name, Set<Code> allowed, Supplier<Status> function) {
    try {
      return Packing.status(ContractException.guarded(name, function), allowed);
    } catch (ContractException e) {
      return failure(e);
    }
  }

  /** The status of an author's failure, which is logged: the scheduler may go on without it. */
  Common.Status failure(ContractException problem) {
    problem.report(session.traits.name);
    return Common.Status.newBuilder()
        .setCode(Common.Code.CODE_ERROR)
        .addReasons(session.traits.name + ": " + problem.getMessage())
        .build();
  }

  void count(long asked, long passed) {
    session.meter.verdicts(passed, asked - passed);
    if (span.isRecording()) {
      span.setAttribute("berth.nodes.passed", passed);
      span.setAttribute("berth.nodes.rejected", asked - passed);
    }
  }
}
