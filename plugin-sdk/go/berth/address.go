package berth

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc/credentials"
)

// umasking: the umask belongs to the process.
var umasking sync.Mutex

func (s *Server) listen() (net.Listener, error) {
	if path, unix := unixPath(s.address); unix {
		return listenOnSocket(path)
	}
	if s.credentials == nil {
		return nil, fmt.Errorf("%s: only unix:/path sockets are served without certificates", s.address)
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.address, err)
	}
	return listener, nil
}

// unixPath gives the socket's path; false for TCP addresses.
func unixPath(address string) (string, bool) {
	path, unix := strings.CutPrefix(address, "unix:")
	return strings.TrimPrefix(path, "//"), unix
}

// isShared says whether the socket is open to the group of the process: a
// host of another user dials it.
func isShared() bool {
	return os.Getenv("BERTH_PLUGIN_SOCKET_SHARED") == "true"
}

// listenOnSocket makes a socket that is private, or open to its group alone,
// from its first moment on.
func listenOnSocket(path string) (net.Listener, error) {
	if err := prepareSocket(path); err != nil {
		return nil, fmt.Errorf("unix:%s: %w", path, err)
	}
	umasking.Lock()
	defer umasking.Unlock()
	mask := 0o177
	if isShared() {
		mask = 0o117
	}
	before := syscall.Umask(mask)
	defer syscall.Umask(before)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("unix:%s: %w", path, err)
	}
	return listener, nil
}

// prepareSocket makes the socket's directory, private if it is new, and takes
// away a socket without a server.
func prepareSocket(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if isShared() && info.Mode().Perm() == 0o700 {
		if err := os.Chmod(folder, 0o750); err != nil {
			return err
		}
	}
	if info.Mode().Perm()&0o022 != 0 {
		slog.Warn("others may write to the socket's directory", "path", folder)
	}
	info, err = os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("there is a file that is no socket")
	}
	if probe, err := net.Dial("unix", path); err == nil {
		return errors.Join(errors.New("in use"), probe.Close())
	}
	return os.Remove(path)
}

// MutualTLS reads certificates for TCP: the plugin's own, and the authority that
// the scheduler's certificate must come from.
func MutualTLS(certificate, key, authority string) (credentials.TransportCredentials, error) {
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	data, err := os.ReadFile(authority)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("authority: %s holds no certificate", authority)
	}
	return credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		MinVersion:   tls.VersionTLS13,
	}), nil
}
