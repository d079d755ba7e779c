package dev.berth.plugin;

import java.util.concurrent.Callable;

/** How a plugin's own threads and timers touch what its methods touch. */
public interface Turns {
  /**
   * Runs it as a call's method is run: by itself, in its turn. It may not be used in a method that
   * answers a call.
   */
  void run(Runnable function);

  /**
   * Waits for something outside the process, such as an answer over the network, while other calls
   * of the plugin go on. What they change, the cluster's state included, may be different
   * afterwards.
   */
  static <T> T await(Callable<T> function) throws Exception {
    Place held = Place.CURRENT.get();
    if (held == null || !held.isHeld()) {
      return function.call();
    }
    held.giveUp();
    Call call = Call.CURRENT.get();
    try {
      return function.call();
    } finally {
      // The caller goes on to touch what is shared, so it must have its turn even if its caller
      // went away.
      held.enterAgain(Patience.ENDLESS);
      Call.CURRENT.set(call);
    }
  }
}
