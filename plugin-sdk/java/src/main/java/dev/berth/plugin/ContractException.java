package dev.berth.plugin;

import java.util.function.Supplier;

/** What an author's method did that can't be sent; the attempt fails with this text. */
final class ContractException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Whether the log has it already, with its stack. */
  private final boolean logged;

  ContractException(String text) {
    this(text, false);
  }

  private ContractException(String text, boolean logged) {
    super(text, null, false, false);
    this.logged = logged;
  }

  /** Logs it, unless it was where it was thrown. */
  void report(String plugin) {
    if (!logged) {
      FailureLog.FAILURES.failed(plugin + " failed: " + getMessage(), null);
    }
  }

  /** Calls the author's method; what it throws is a failure of the plugin, never of the process. */
  static <T> T guarded(String name, Supplier<T> function) {
    try {
      return function.get();
    } catch (RuntimeException | StackOverflowError | LinkageError | AssertionError e) {
      FailureLog.FAILURES.failed(name + " failed", e);
      throw new ContractException(name + ": " + e, true);
    }
  }

  /** The same for a method whose failure matters to no call. */
  static void tell(String name, Runnable function) {
    try {
      guarded(
          name,
          () -> {
            function.run();
            return null;
          });
    } catch (ContractException logged) {
      return;
    }
  }
}
