// Coscheduling schedules the pods of a PodGroup together, or not at all.
package main

import (
	"log/slog"

	"berth.dev/plugin-sdk/go/berth"
)

func main() {
	writer := writerFromEnvironment()
	if writer == nil {
		slog.Info("no status of a pod group is written: no API server is known", "variable", serverVariable)
	}
	berth.Main(newCoscheduling(writer).plugin)
}
