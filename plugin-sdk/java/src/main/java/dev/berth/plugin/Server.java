package dev.berth.plugin;

import berth.plugin.v1.SchedulingServiceGrpc;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.Epoll;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.protobuf.services.HealthStatusManager;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.regex.Pattern;

/** A plugin being served. */
public final class Server implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("berth");

  /** It warns, at each connection, that a unix socket has no keepalive. */
  private static final Logger NETTY = Logger.getLogger("io.grpc.netty.shaded.io.netty.bootstrap");

  static {
    NETTY.setLevel(Level.SEVERE);
  }

  /** Replies and calls grow with the cluster; Sync stays below 4 MiB by itself. */
  private static final int LARGEST_MESSAGE = 64 << 20;

  private static final Pattern TTRPC_NAME = Pattern.compile("[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}");

  private final Plugin plugin;
  private final Traits traits;
  private final String address;
  private final Options options;
  private final Tracing tracing;
  private final Session session;
  private final HealthStatusManager health = new HealthStatusManager();
  private final ExecutorService executor = Executors.newCachedThreadPool(Server::thread);
  private final List<Path> sockets = new ArrayList<>();
  private EventLoopGroup loops;
  private Services services;
  private Ttrpc ttrpc;
  private Pages pages;
  private io.grpc.Server grpc;

  /** Choices about serving. */
  public record Options(MutualTls tls, String metricsAddress, Duration grace) {
    /** Metrics where BERTH_METRICS_ADDRESS says, five seconds of grace, unix sockets only. */
    public static Options fromEnvironment() {
      return new Options(
          null, System.getenv().getOrDefault("BERTH_METRICS_ADDRESS", ""), Duration.ofSeconds(5));
    }

    /** With certificates for TCP. */
    public Options with(MutualTls certificates) {
      return new Options(certificates, metricsAddress, grace);
    }

    /** With metrics at host:port, none if empty. */
    public Options withMetrics(String hostAndPort) {
      return new Options(tls, hostAndPort, grace);
    }

    /** With so much time for running calls to end when the server stops. */
    public Options withGrace(Duration time) {
      return new Options(tls, metricsAddress, time);
    }
  }

  /**
   * Prepares to serve the plugin at unix:/path/to/socket, or at host:port with certificates.
   *
   * @throws IllegalArgumentException if the plugin contradicts itself
   * @throws IOException if the environment asks for traces that can't be written
   */
  public Server(Plugin plugin, String address, Options options) throws IOException {
    this.plugin = plugin;
    this.traits = plugin.traits();
    this.address = address;
    this.options = options;
    List<String> problems = Capabilities.problems(plugin, traits);
    if (!problems.isEmpty()) {
      throw new IllegalArgumentException(String.join("; ", problems));
    }
    tracing = Tracing.of(traits, System.getenv());
    Meter meter = new Meter(traits.name, traits.version);
    session = new Session(plugin, traits, meter, this::reportReadiness);
  }

  /**
   * Listens and serves.
   *
   * @throws IOException if someone else listens there, or the address can't be served
   */
  public void start() throws IOException {
    ContractException.tell("serving", () -> plugin.serving(session));
    if (traits.clock != null) {
      traits.clock.serve(session);
    }
    WarmUp.once();
    Answering answering = new Answering(session, tracing);
    boolean unix = address.startsWith("unix:");
    Path path = unix ? Path.of(address.replaceFirst("^unix:(//)?", "")) : null;
    try {
      String second = unix ? startTtrpc(answering, path) : null;
      services = new Services(answering, Capabilities.of(plugin, traits, second), executor);
      reportReadiness(false);
      grpc = unix ? onSocket(path) : onPort();
    } catch (IOException e) {
      close();
      Throwable cause = e.getCause() == null ? e : e.getCause();
      throw new IOException(address + ": " + cause.getMessage(), e);
    }
    if (!options.metricsAddress.isEmpty()) {
      try {
        pages = new Pages(session, options.metricsAddress);
      } catch (IOException e) {
        close();
        throw e;
      }
    }
    LOG.log(
        System.Logger.Level.INFO, "serving {0} {1} at {2}", traits.name, traits.version, address);
  }

  /** The second socket's name, null where the first one's allows none. */
  private String startTtrpc(Answering answering, Path path) throws IOException {
    String name = path.getFileName() + ".ttrpc";
    if (!TTRPC_NAME.matcher(name).matches()) {
      return null;
    }
    ServerSocketChannel listener = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    Path second = path.resolveSibling(name);
    try {
      sockets().bind(second, made -> listener.bind(UnixDomainSocketAddress.of(made)));
    } catch (IOException e) {
      listener.close();
      throw e;
    }
    sockets.add(second);
    ttrpc = new Ttrpc(answering, listener, executor);
    ttrpc.serve();
    return name;
  }

  private io.grpc.Server onSocket(Path path) throws IOException {
    if (!Epoll.isAvailable()) {
      throw new IOException("unix sockets are served on Linux only");
    }
    loops = new EpollEventLoopGroup(1);
    io.grpc.Server made =
        sockets()
            .bind(
                path,
                hidden ->
                    served(
                            NettyServerBuilder.forAddress(new DomainSocketAddress(hidden.toFile()))
                                .channelType(EpollServerDomainSocketChannel.class)
                                .bossEventLoopGroup(loops)
                                .workerEventLoopGroup(loops))
                        .build()
                        .start());
    sockets.add(path);
    return made;
  }

  private io.grpc.Server onPort() throws IOException {
    if (options.tls == null) {
      throw new IOException("only unix:/path sockets are served without certificates");
    }
    InetSocketAddress where = tcp(address);
    return served(NettyServerBuilder.forAddress(where, options.tls.credentials())).build().start();
  }

  private NettyServerBuilder served(NettyServerBuilder builder) {
    builder
        .maxInboundMessageSize(LARGEST_MESSAGE)
        .executor(executor)
        .intercept(new Services.TraceContext())
        .addService(health.getHealthService());
    services.definitions().forEach(builder::addService);
    return builder;
  }

  private static Sockets sockets() {
    return new Sockets("true".equals(System.getenv("BERTH_PLUGIN_SOCKET_SHARED")));
  }

  /** Where metrics are shown. */
  InetSocketAddress metricsAddress() {
    return pages.address();
  }

  /** Turns unready, lets calls that are running end, and writes out spans. */
  @Override
  public void close() {
    health.enterTerminalState();
    if (traits.clock != null) {
      traits.clock.stop();
    }
    try {
      stopServing();
    } catch (IOException e) {
      LOG.log(System.Logger.Level.WARNING, "stopping", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (pages != null) {
      pages.stop();
    }
    tracing.close(options.grace.toMillis());
    if (loops != null) {
      loops.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }
    executor.shutdown();
  }

  private void stopServing() throws IOException, InterruptedException {
    long until = System.nanoTime() + options.grace.toNanos();
    // Before another process can find them unserved and put its own there.
    for (Path each : sockets) {
      Files.deleteIfExists(each);
    }
    if (grpc != null) {
      services.stop();
      grpc.shutdown();
    }
    if (ttrpc != null) {
      Ttrpc stopped = ttrpc;
      var ending =
          executor.submit(
              () -> {
                stopped.stop();
                return true;
              });
      try {
        ending.get(until - System.nanoTime(), TimeUnit.NANOSECONDS);
      } catch (java.util.concurrent.TimeoutException e) {
        stopped.abort();
      } catch (java.util.concurrent.ExecutionException e) {
        throw new IOException(e.getCause());
      }
    }
    if (grpc != null && !grpc.awaitTermination(until - System.nanoTime(), TimeUnit.NANOSECONDS)) {
      grpc.shutdownNow();
    }
  }

  private void reportReadiness(boolean ready) {
    health.setStatus(
        SchedulingServiceGrpc.SERVICE_NAME,
        ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING);
  }

  /**
   * Reads host:port, [host]:port or :port.
   *
   * @throws IOException if it is none
   */
  static InetSocketAddress tcp(String address) throws IOException {
    int colon = address.lastIndexOf(':');
    try {
      int port = Integer.parseInt(address.substring(colon + 1));
      String host = address.substring(0, Math.max(0, colon)).replaceAll("^\\[|]$", "");
      return host.isEmpty() ? new InetSocketAddress(port) : new InetSocketAddress(host, port);
    } catch (IllegalArgumentException e) {
      throw new IOException("\"" + address + "\" is no host:port", e);
    }
  }

  private static Thread thread(Runnable task) {
    Thread made = new Thread(task, "berth");
    made.setDaemon(true);
    return made;
  }
}
