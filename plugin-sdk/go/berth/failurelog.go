package berth

import (
	"log/slog"
	"sync"
	"time"
)

const (
	linesAtOnce   = 20
	linesASecond  = 0.5
	failedMessage = "plugin function failed"
)

// failureLog writes lines about functions of the author that fail, unless
// there are too many; the next one says how many were left out.
type failureLog struct {
	lock    sync.Mutex
	now     func() time.Time
	left    float64
	looked  time.Time
	leftOut int
}

var failures = &failureLog{now: time.Now, left: linesAtOnce}

// write writes a line if there is room for it.
func (l *failureLog) write(pairs ...any) {
	admitted, leftOut := l.admits()
	if !admitted {
		return
	}
	if leftOut > 0 {
		pairs = append(pairs, "left_out", leftOut)
	}
	slog.Error(failedMessage, pairs...)
}

func (l *failureLog) admits() (admitted bool, leftOut int) {
	l.lock.Lock()
	defer l.lock.Unlock()
	now := l.now()
	if !l.looked.IsZero() {
		l.left = min(linesAtOnce, l.left+now.Sub(l.looked).Seconds()*linesASecond)
	}
	l.looked = now
	if l.left < 1 {
		l.leftOut++
		return false, 0
	}
	l.left--
	leftOut, l.leftOut = l.leftOut, 0
	return true, leftOut
}
