package berth

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
)

const (
	goPercent     = 100 // Go's own: the heap may double before garbage is collected
	mostPercent   = 400
	smallHeap     = 4 << 20
	spareBytes    = 48 << 20
	shareOfLimit  = 4
	memoryLimitAt = "/sys/fs/cgroup/memory.max"
)

// collector has garbage collected less often than Go does by itself.
//
// A mirror of 5,000 nodes is some hundred thousand objects in a dozen MiB, which
// take 5 to 10 ms to mark. Go marks on every core that has nothing else to do, and
// the workers there look at the network next to never: a trace shows requests that
// come meanwhile being read when the marking is over. Where the heap may only double
// that is one call in a hundred or so, and the 99th percentile of all calls; with
// more room it is one in a thousand.
type collector struct {
	mutex   sync.Mutex
	spare   uint64
	percent int
	ended   bool
}

// spareCollections gives the heap room until it is stopped; nil where the user chose
// how often to collect: with GOGC, GOMEMLIMIT, or from the program.
func spareCollections() *collector {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	if readMetric("/gc/gogc:percent") != goPercent || readMetric("/gc/gomemlimit:bytes") != math.MaxInt64 {
		return nil
	}
	made := &collector{spare: min(spareBytes, memoryLimit()/shareOfLimit), percent: goPercent}
	made.watch()
	return made
}

// watch adjusts after each collection, which finds an object that nothing refers to.
func (c *collector) watch() {
	runtime.AddCleanup(&struct{ *collector }{c}, func(c *collector) {
		if c.adjust() {
			c.watch()
		}
	}, c)
}

// adjust sets the percentage for what is alive now; false if it is not to be set any more.
func (c *collector) adjust() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	wanted := percentFor(readMetric("/gc/heap/live:bytes"), c.spare)
	if change := wanted - c.percent; !c.ended && max(change, -change)*10 > c.percent {
		c.set(wanted)
	}
	return !c.ended
}

func (c *collector) stop() {
	if c == nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.ended {
		c.set(goPercent)
	}
	c.ended = true
}

// set sets the percentage, unless the program has set another one since.
func (c *collector) set(percent int) {
	if before := debug.SetGCPercent(percent); before != c.percent {
		debug.SetGCPercent(before)
		c.ended = true
	}
	c.percent = percent
}

// percentFor gives a heap room for so many bytes of garbage. A small heap is
// collected in no time, a large one has the room anyway.
func percentFor(live, spare uint64) int {
	if live < smallHeap {
		return goPercent
	}
	return int(min(max(spare*100/live, goPercent), mostPercent))
}

// memoryLimit is what the container may take; the largest number if that is not known.
func memoryLimit() uint64 {
	text, err := os.ReadFile(memoryLimitAt)
	if err != nil {
		return math.MaxUint64
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return math.MaxUint64 // "max"
	}
	return limit
}

func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
