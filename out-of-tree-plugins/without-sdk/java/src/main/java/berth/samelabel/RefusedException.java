package berth.samelabel;

import berth.plugin.v1.State.NackReason;

/** A message of the stream that cannot be applied. */
final class RefusedException extends Exception {
    final NackReason reason;

    RefusedException(NackReason reason, String message) {
        super(message);
        this.reason = reason;
    }
}
