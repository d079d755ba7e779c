package dev.berth.plugin;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/** Unix sockets that are private, or open to their group alone, from their first moment on. */
final class Sockets {
  private static final System.Logger LOG = System.getLogger("berth");
  private static final int FILE_TYPE = 0170000;
  private static final int SOCKET = 0140000;

  private final boolean shared;

  /** Shared sockets are open to the group of the process: a host of another user dials them. */
  Sockets(boolean shared) {
    this.shared = shared;
  }

  /** Listens at a path. */
  interface Listening<T> {
    T listen(Path path) throws IOException;
  }

  /**
   * Listens at the path. Java can't set a umask: the socket is made in a folder that others can't
   * enter, and goes to its place with its mode.
   *
   * @throws IOException if someone else listens there, or that can't be done
   */
  <T> T bind(Path path, Listening<T> binding) throws IOException {
    Path folder = path.toAbsolutePath().getParent();
    prepare(folder);
    checkFree(path);
    // A short name: the path of a socket has at most 107 bytes.
    String name = "." + Integer.toString(ThreadLocalRandom.current().nextInt(1 << 30), 36);
    Path hidden =
        Files.createDirectory(
            folder.resolve(name), PosixFilePermissions.asFileAttribute(mode("rwx------")));
    try {
      Path made = hidden.resolve("s");
      T bound = binding.listen(made);
      Files.setPosixFilePermissions(made, mode(shared ? "rw-rw----" : "rw-------"));
      Files.move(made, path, StandardCopyOption.ATOMIC_MOVE);
      return bound;
    } finally {
      Files.deleteIfExists(hidden.resolve("s"));
      Files.delete(hidden);
    }
  }

  private void prepare(Path folder) throws IOException {
    if (!Files.isDirectory(folder)) {
      Set<PosixFilePermission> wanted = mode(shared ? "rwxr-x---" : "rwx------");
      Files.createDirectories(folder, PosixFilePermissions.asFileAttribute(wanted));
    }
    Set<PosixFilePermission> found = Files.getPosixFilePermissions(folder);
    if (shared && found.equals(mode("rwx------"))) {
      Files.setPosixFilePermissions(folder, mode("rwxr-x---"));
    }
    if (found.contains(PosixFilePermission.GROUP_WRITE)
        || found.contains(PosixFilePermission.OTHERS_WRITE)) {
      LOG.log(System.Logger.Level.WARNING, "others may write to the folder {0}", folder);
    }
  }

  private static void checkFree(Path path) throws IOException {
    if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    int found = (int) Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS);
    if ((found & FILE_TYPE) != SOCKET) {
      throw new IOException("there is a file that is no socket");
    }
    try (SocketChannel probe = SocketChannel.open(StandardProtocolFamily.UNIX)) {
      probe.connect(UnixDomainSocketAddress.of(path));
    } catch (IOException e) {
      return; // nothing serves it: an earlier process has left it
    }
    throw new IOException("in use");
  }

  private static Set<PosixFilePermission> mode(String text) {
    return PosixFilePermissions.fromString(text);
  }
}
