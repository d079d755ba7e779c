// Same-label is a plugin for Berth on grpc-go alone: it keeps pods on nodes
// with their own value of a label.
//
//go:generate ./generate.sh
package main

import (
	"errors"
	"io/fs"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	pb "berth.dev/same-label/pluginv1"
)

// Calls grow with the cluster, while grpc-go takes 4 MiB by default.
const largestCall = 64 << 20

func main() {
	path, isUnix := strings.CutPrefix(os.Getenv("BERTH_PLUGIN_ADDRESS"), "unix:")
	if !isUnix {
		log.Fatal("BERTH_PLUGIN_ADDRESS: an address unix:PATH is needed")
	}
	listener, err := listen(path)
	if err != nil {
		log.Fatal(err)
	}
	shared := newSession()
	server := grpc.NewServer(grpc.MaxRecvMsgSize(largestCall))
	grpc_health_v1.RegisterHealthServer(server, shared.health)
	pb.RegisterIdentityServiceServer(server, identityService{session: shared})
	pb.RegisterStateServiceServer(server, stateService{session: shared})
	pb.RegisterSchedulingServiceServer(server, schedulingService{session: shared})
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		server.Stop() // Streams are open for ever, so their ends are not waited for.
	}()
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}

// listen listens on a socket that other users cannot open; an earlier process
// may have left one.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	syscall.Umask(0o177)
	return net.Listen("unix", path)
}
