package dev.berth.plugin;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.Logger;

/** A plugin as a program. */
public final class Program {
  private static final String USAGE =
      """
      --address          unix:/path/to/socket, or host:port with certificates
      --metrics-address  host:port for Prometheus; none if empty
      --grace            how many seconds running calls may take to end (default 5)
      --tls-certificate  the plugin's certificate, for host:port
      --tls-key          its key
      --tls-authority    who signs the scheduler's certificate
      --log-level        debug, info, warn or error (default info)
      """;

  private static final Map<String, Level> LEVELS =
      Map.of("debug", Level.FINE, "info", Level.INFO, "warn", Level.WARNING, "error", Level.SEVERE);

  /** Kept here, since loggers that are not are made anew with their defaults. */
  private static final Logger LIBRARIES = Logger.getLogger("");

  private static final Logger OWN = Logger.getLogger("berth");

  private Program() {}

  /**
   * Reads the flags, serves the plugin until SIGTERM or SIGINT, and ends the process; with exit
   * code 2 where it can't be served. Flags that are not given come from BERTH_PLUGIN_ADDRESS and
   * BERTH_METRICS_ADDRESS.
   */
  public static void main(Plugin plugin, String... arguments) {
    String name = plugin.traits().name;
    try {
      Map<String, String> flags = flags(arguments);
      if (flags.containsKey("--help")) {
        System.out.print(USAGE);
        return;
      }
      log(flags.getOrDefault("--log-level", "info"));
      Server server = new Server(plugin, address(flags), options(flags));
      server.start();
      Runtime.getRuntime().addShutdownHook(new Thread(() -> end(server)));
      new java.util.concurrent.CountDownLatch(1).await();
    } catch (IOException | IllegalArgumentException e) {
      System.err.println(name + ": " + e.getMessage());
      System.exit(2);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void end(Server server) {
    server.close();
    Runtime.getRuntime().halt(0); // a signal's own exit code would be a failure's
  }

  private static Map<String, String> flags(String... arguments) {
    Map<String, String> flags = new LinkedHashMap<>();
    for (int i = 0; i < arguments.length; i++) {
      String[] parts = arguments[i].replaceFirst("^--?", "--").split("=", 2);
      boolean known = parts[0].equals("--help") || USAGE.contains(parts[0] + " ");
      if (!known) {
        throw new IllegalArgumentException("unknown flag " + arguments[i]);
      }
      boolean inline = parts.length == 2 || parts[0].equals("--help");
      if (!inline && i + 1 == arguments.length) {
        throw new IllegalArgumentException(parts[0] + " needs a value");
      }
      flags.put(parts[0], inline ? parts[parts.length - 1] : arguments[++i]);
    }
    return flags;
  }

  private static String address(Map<String, String> flags) {
    String address =
        flags.getOrDefault("--address", System.getenv().getOrDefault("BERTH_PLUGIN_ADDRESS", ""));
    if (address.isEmpty()) {
      throw new IllegalArgumentException("no address: give one, or set BERTH_PLUGIN_ADDRESS");
    }
    return address;
  }

  private static Server.Options options(Map<String, String> flags) {
    Server.Options options = Server.Options.fromEnvironment();
    if (flags.containsKey("--metrics-address")) {
      options = options.withMetrics(flags.get("--metrics-address"));
    }
    if (flags.containsKey("--grace")) {
      double seconds = Double.parseDouble(flags.get("--grace").replaceFirst("s$", ""));
      options = options.withGrace(Duration.ofMillis((long) (seconds * 1000)));
    }
    if (flags.keySet().stream().anyMatch(flag -> flag.startsWith("--tls-"))) {
      options =
          options.with(
              new MutualTls(
                  file(flags, "--tls-certificate"),
                  file(flags, "--tls-key"),
                  file(flags, "--tls-authority")));
    }
    return options;
  }

  private static Path file(Map<String, String> flags, String flag) {
    if (!flags.containsKey(flag)) {
      throw new IllegalArgumentException(flag + " is missing: mutual TLS needs all three");
    }
    return Path.of(flags.get(flag));
  }

  /** One line a message, from that level on. */
  private static void log(String level) {
    if (!LEVELS.containsKey(level)) {
      throw new IllegalArgumentException(
          "--log-level: " + level + " is none of debug, info, warn, error");
    }
    System.setProperty("java.util.logging.SimpleFormatter.format", "%1$tFT%1$tT %4$s %5$s%6$s%n");
    LIBRARIES.setLevel(Level.WARNING);
    OWN.setLevel(LEVELS.get(level));
    for (Handler handler : LIBRARIES.getHandlers()) {
      handler.setLevel(LEVELS.get(level));
    }
  }
}
