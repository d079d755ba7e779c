package dev.berth.plugin;

import io.grpc.ServerCredentials;
import io.grpc.TlsServerCredentials;
import java.io.IOException;
import java.nio.file.Path;

/**
 * Certificates for TCP: the plugin's own with its key (PKCS#8), and the authority that the
 * scheduler's certificate must come from; all PEM files.
 */
public record MutualTls(Path certificate, Path key, Path authority) {
  ServerCredentials credentials() throws IOException {
    return TlsServerCredentials.newBuilder()
        .keyManager(certificate.toFile(), key.toFile())
        .trustManager(authority.toFile())
        .clientAuth(TlsServerCredentials.ClientAuth.REQUIRE)
        .build();
  }
}
