package dev.berth.plugin.testing;

import berth.plugin.v1.Queueing;
import berth.plugin.v1.QueueingServiceGrpc;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What the plugin says on its own. */
final class Voice implements Iterator<Said> {
  private final BlockingQueue<Said> said = new LinkedBlockingQueue<>();

  Voice(ManagedChannel channel) {
    CountDownLatch heard = new CountDownLatch(1);
    ClientCall<Queueing.RequeueRequest, Queueing.RequeueResponse> call =
        channel.newCall(QueueingServiceGrpc.getRequeueMethod(), CallOptions.DEFAULT);
    call.start(
        new ClientCall.Listener<>() {
          @Override
          public void onHeaders(Metadata headers) {
            heard.countDown();
          }

          @Override
          public void onMessage(Queueing.RequeueResponse message) {
            said.add(read(message));
            call.request(1);
          }
        },
        new Metadata());
    call.sendMessage(Queueing.RequeueRequest.getDefaultInstance());
    call.halfClose();
    call.request(1);
    try {
      if (!heard.await(Host.PATIENCE_SECONDS, TimeUnit.SECONDS)) {
        throw new AssertionError("the plugin sent no headers on Requeue");
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Override
  public boolean hasNext() {
    return true;
  }

  /** The next message; a failure where none comes. */
  @Override
  public Said next() {
    try {
      Said next = said.poll(Host.PATIENCE_SECONDS, TimeUnit.SECONDS);
      if (next == null) {
        throw new AssertionError("the plugin said nothing");
      }
      return next;
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static Said read(Queueing.RequeueResponse message) {
    List<String> uids =
        switch (message.getActionCase()) {
          case REQUEUE -> message.getRequeue().getUidsList();
          case ALLOW_WAITING -> message.getAllowWaiting().getUidsList();
          case REJECT_WAITING -> message.getRejectWaiting().getUidsList();
          case SORT_KEYS -> message.getSortKeys().getUidsList();
          default -> List.of();
        };
    return new Said(message.getActionCase().name(), uids, message.getCause());
  }
}
