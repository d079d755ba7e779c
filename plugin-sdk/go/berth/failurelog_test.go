package berth

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A function that fails at every pod has few lines, and the next one says how many were left out.
func TestFailuresAreLoggedAtABoundedRate(t *testing.T) {
	now := time.Unix(0, 0)
	log := &failureLog{now: func() time.Time { return now }, left: linesAtOnce}
	lines := 0
	for range 100 {
		if admitted, _ := log.admits(); admitted {
			lines++
		}
	}
	now = now.Add(2 * time.Second)
	admitted, leftOut := log.admits()
	if lines != linesAtOnce || !admitted || leftOut != 100-linesAtOnce {
		t.Errorf("%d lines, then %v with %d left out", lines, admitted, leftOut)
	}
}

// An answer that can't be sent is in the plugin's log, in the words that the scheduler gets.
func TestWrongAnswersAreLogged(t *testing.T) {
	var written bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&written, nil)))
	defer slog.SetDefault(before)
	// The tests before may have used up the process's lines.
	failures.lock.Lock()
	failures.left = linesAtOnce
	failures.lock.Unlock()
	made := call{plugin: &Plugin{Name: "short"}}
	status := made.failure(errors.New("2 scores for 3 nodes"))
	if !strings.Contains(written.String(), `error="2 scores for 3 nodes"`) {
		t.Errorf("the log says %q", written.String())
	}
	if status.Reasons[0] != "short: 2 scores for 3 nodes" {
		t.Errorf("the status says %q", status.Reasons[0])
	}
}
