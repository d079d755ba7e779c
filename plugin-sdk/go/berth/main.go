package berth

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// Main is a plugin program: it reads -address, -metrics-address, -grace,
// -log-level and the three of mutual TLS, serves the plugin until SIGTERM or
// SIGINT, and ends the process; with exit code 2 where it can't be served.
//
// Flags that are not given come from BERTH_PLUGIN_ADDRESS and
// BERTH_METRICS_ADDRESS.
func Main(plugin *Plugin, options ...Option) {
	os.Exit(run(plugin, os.Args[1:], options))
}

func run(plugin *Plugin, arguments []string, options []Option) int {
	flags := flag.NewFlagSet(plugin.Name, flag.ContinueOnError)
	var level slog.Level
	address := flags.String("address", os.Getenv("BERTH_PLUGIN_ADDRESS"), "unix:/path/to/socket, or host:port with certificates")
	metrics := flags.String("metrics-address", os.Getenv("BERTH_METRICS_ADDRESS"), "host:port for Prometheus; none if empty")
	grace := flags.Duration("grace", 0, "how long running calls may take to end (default 5s)")
	certificate := flags.String("tls-certificate", "", "the plugin's certificate, for host:port")
	key := flags.String("tls-key", "", "its key")
	authority := flags.String("tls-authority", "", "who signs the scheduler's certificate")
	flags.TextVar(&level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	switch err := flags.Parse(arguments); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	options = append(options, WithMetrics(*metrics))
	if *grace > 0 {
		options = append(options, WithGrace(*grace))
	}
	if *certificate != "" || *key != "" || *authority != "" {
		chosen, err := MutualTLS(*certificate, *key, *authority)
		if err != nil {
			return complain(plugin, err)
		}
		options = append(options, WithCredentials(chosen))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := Serve(ctx, plugin, *address, options...); err != nil {
		return complain(plugin, err)
	}
	return 0
}

func complain(plugin *Plugin, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", plugin.Name, err)
	return 2
}
