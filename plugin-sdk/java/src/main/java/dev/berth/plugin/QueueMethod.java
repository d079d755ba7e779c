package dev.berth.plugin;

import berth.plugin.v1.Queueing;
import com.google.protobuf.Message;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A unary call of QueueingService, by whichever way it comes. */
record QueueMethod<Q extends Message, R extends Message>(
    String name, Q empty, BiFunction<Session, Q, R> function) {
  /** All of them, by name. */
  static final Map<String, QueueMethod<?, ?>> ALL =
      Stream.of(
              new QueueMethod<>(
                  "QueueingHints",
                  Queueing.QueueingHintsRequest.getDefaultInstance(),
                  Hints::answer),
              new QueueMethod<>(
                  "SortKeys", Queueing.SortKeysRequest.getDefaultInstance(), Ordering::answer))
          .collect(Collectors.toMap(QueueMethod::name, Function.identity()));

  /** The answer to a request of this call's, which the transport has taken for one. */
  @SuppressWarnings("unchecked")
  R answer(Session session, Message request) {
    return function.apply(session, (Q) empty.getClass().cast(request));
  }
}
