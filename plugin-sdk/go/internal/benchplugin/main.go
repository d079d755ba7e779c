// Benchplugin is the plugin that the sidecar benchmark starts: it turns down
// every tenth node, and scores the others by their number, all at once.
//
//	benchplugin NAME ADDRESS
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
)

const leftOut = 10

var wrongNumber = berth.Reason{Text: "node(s) had the wrong number"}

func filterNodes(_ *corev1.Pod, nodes *berth.Nodes) berth.Verdicts {
	codes := make([]uint8, nodes.Len())
	for i := 0; i < len(codes); i += leftOut {
		codes[i] = 1
	}
	return berth.Verdicts{Codes: codes, Reasons: []berth.Reason{wrongNumber}}
}

func scoreNodes(_ *corev1.Pod, nodes *berth.Nodes) []int64 {
	points := make([]int64, nodes.Len())
	for i := range points {
		points[i] = int64(i % 101)
	}
	return points
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// As the Python plugin beside it, it follows pods too.
	plugin := &berth.Plugin{Name: os.Args[1], WantsPods: true, FilterNodes: filterNodes, ScoreNodes: scoreNodes}
	if err := berth.Serve(ctx, plugin, os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
