package berth

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// holding is a heap that is worth sparing, just collected.
func holding(t *testing.T) {
	t.Helper()
	held := make([]byte, 2*smallHeap)
	t.Cleanup(func() { runtime.KeepAlive(held) })
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetGCPercent(goPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	runtime.GC()
}

func percent() int { return int(readMetric("/gc/gogc:percent")) }

func TestAHeapHasRoomWhileAPluginIsServed(t *testing.T) {
	holding(t)

	spared := spareCollections()
	for collections := 0; percent() == goPercent && collections < 1000; collections++ {
		runtime.GC()
	}
	during := percent()
	spared.stop()

	if during <= goPercent || percent() != goPercent {
		t.Errorf("GOGC was %d and is %d", during, percent())
	}
}

func TestWhatTheUserChoseIsLeft(t *testing.T) {
	for name, choose := range map[string]func(t *testing.T){
		"GOGC, though it is Go's own": func(t *testing.T) { t.Setenv("GOGC", "100") },
		"GOMEMLIMIT":                  func(t *testing.T) { t.Setenv("GOMEMLIMIT", "1GiB") },
		"a percentage, in the program": func(*testing.T) {
			debug.SetGCPercent(50)
		},
		"a limit, in the program": func(t *testing.T) {
			before := debug.SetMemoryLimit(1 << 40)
			t.Cleanup(func() { debug.SetMemoryLimit(before) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			holding(t)
			choose(t)

			if spareCollections() != nil {
				t.Error("it was overruled")
			}
		})
	}
}

func TestWhatTheProgramChoosesLaterIsLeft(t *testing.T) {
	holding(t)
	spared := &collector{spare: spareBytes, percent: goPercent}

	began := spared.adjust()
	debug.SetGCPercent(50)
	spared.percent = 2 * mostPercent // another heap than before, which needs another percentage
	goesOn := spared.adjust()
	spared.stop()

	if !began || goesOn || percent() != 50 {
		t.Errorf("GOGC is %d, adjusted further: %v", percent(), goesOn)
	}
}

func TestRoomIsForHeapsThatNeedIt(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		live, spare uint64
		want        int
	}{
		"nothing alive":      {0, 48 * mib, 100},
		"a small one":        {3 * mib, 48 * mib, 100},
		"at most four times": {5 * mib, 48 * mib, 400},
		"what is missing":    {16 * mib, 48 * mib, 300},
		"a large one":        {200 * mib, 48 * mib, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentFor(test.live, test.spare); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
