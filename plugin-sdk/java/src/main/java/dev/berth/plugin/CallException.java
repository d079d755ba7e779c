package dev.berth.plugin;

import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;

/** Why a call was not answered. */
final class CallException extends RuntimeException {
  /** The profile has to be configured. */
  static final String NOT_CONFIGURED = "NOT_CONFIGURED";

  /** The state has to be transferred. */
  static final String NOT_SYNCED = "NOT_SYNCED";

  /** A newer generation has to be asked about. */
  static final String GENERATION_GONE = "GENERATION_GONE";

  /** The pod's object has to be sent. */
  static final String POD_UNKNOWN = "POD_UNKNOWN";

  private static final Metadata.Key<String> REASON =
      Metadata.Key.of("berth-reason", Metadata.ASCII_STRING_MARSHALLER);

  /** The host reads 8 KiB of trailers and nothing of longer ones; percent-encoded, this is 6. */
  private static final int LONGEST_TEXT = 512;

  private static final long serialVersionUID = 1;

  final Status.Code code;
  final String reason;

  CallException(Status.Code code, String text) {
    this(code, "", text);
  }

  private CallException(Status.Code code, String reason, String text) {
    super(text, null, false, false);
    this.code = code;
    this.reason = reason;
  }

  /** A failed precondition: what the sender has to do before it repeats the call. */
  static CallException refused(String reason, String text) {
    return new CallException(Status.Code.FAILED_PRECONDITION, reason, text);
  }

  static CallException invalid(String text) {
    return new CallException(Status.Code.INVALID_ARGUMENT, text);
  }

  /** Any failure in the form in which it travels. */
  static CallException of(Throwable problem) {
    return problem instanceof CallException known
        ? known
        : new CallException(Status.Code.INTERNAL, String.valueOf(problem.getMessage()));
  }

  /** The text, as long as it may be. */
  String text() {
    String text = getMessage();
    int length = text.codePointCount(0, text.length());
    return length <= LONGEST_TEXT
        ? text
        : text.substring(0, text.offsetByCodePoints(0, LONGEST_TEXT));
  }

  StatusRuntimeException forGrpc() {
    Metadata trailers = new Metadata();
    if (!reason.isEmpty()) {
      trailers.put(REASON, reason);
    }
    return code.toStatus().withDescription(text()).asRuntimeException(trailers);
  }
}
