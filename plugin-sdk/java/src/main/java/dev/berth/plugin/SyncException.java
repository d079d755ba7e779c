package dev.berth.plugin;

import berth.plugin.v1.State.NackReason;

/** Why a message of the state stream can't be applied. */
final class SyncException extends RuntimeException {
  private static final long serialVersionUID = 1;

  final NackReason reason;

  SyncException(NackReason reason, String text) {
    super(text, null, false, false);
    this.reason = reason;
  }

  static SyncException badObject(String text) {
    return new SyncException(NackReason.NACK_REASON_BAD_OBJECT, text);
  }

  static SyncException mismatch(String text) {
    return new SyncException(NackReason.NACK_REASON_MISMATCH, text);
  }

  static SyncException outOfOrder(String text) {
    return new SyncException(NackReason.NACK_REASON_OUT_OF_ORDER, text);
  }
}
