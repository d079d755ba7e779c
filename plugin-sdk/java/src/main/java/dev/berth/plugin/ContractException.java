package dev.berth.plugin;

import java.util.function.Supplier;

/** What an author's method did that can't be sent; the attempt fails with this text. */
final class ContractException extends RuntimeException {
  private static final System.Logger LOG = System.getLogger("berth");
  private static final long serialVersionUID = 1;

  ContractException(String text) {
    super(text, null, false, false);
  }

  /** Calls the author's method; what it throws is a failure of the plugin, never of the process. */
  static <T> T guarded(String name, Supplier<T> function) {
    try {
      return function.get();
    } catch (RuntimeException | StackOverflowError | LinkageError | AssertionError e) {
      LOG.log(System.Logger.Level.ERROR, name + " failed", e);
      throw new ContractException(name + ": " + e);
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
