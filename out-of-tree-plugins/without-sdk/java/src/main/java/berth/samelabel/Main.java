package berth.samelabel;

import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;

/** A plugin for Berth on grpc-java alone. */
public final class Main {
    /** Calls grow with the cluster, while grpc-java takes 4 MiB by default. */
    private static final int LARGEST_CALL = 64 << 20;

    private Main() {}

    /** Serves until the process is asked to end. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        String address = System.getenv("BERTH_PLUGIN_ADDRESS");
        if (address == null || !address.startsWith("unix:")) {
            throw new IllegalArgumentException("BERTH_PLUGIN_ADDRESS: an address unix:PATH is needed");
        }
        Path socket = Path.of(address.substring("unix:".length()));
        Files.deleteIfExists(socket); // An earlier process may have left it.
        Session session = new Session();
        EventLoopGroup loops = new EpollEventLoopGroup();
        Server server =
                NettyServerBuilder.forAddress(new DomainSocketAddress(socket.toFile()))
                        .channelType(EpollServerDomainSocketChannel.class)
                        .bossEventLoopGroup(loops)
                        .workerEventLoopGroup(loops)
                        .maxInboundMessageSize(LARGEST_CALL)
                        .addService(session.health.getHealthService())
                        .addService(new IdentityService(session))
                        .addService(new SyncService(session))
                        .addService(new SchedulingService(session))
                        .build()
                        .start();
        Files.setPosixFilePermissions(socket, PosixFilePermissions.fromString("rw-------"));
        // Streams are open for ever, so their ends are not waited for.
        Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
        server.awaitTermination();
    }
}
