package berth

import (
	"container/heap"
	"sync"
	"time"
)

// Clock is what a plugin knows of time: the machine's, until a scheduler says the
// time; that scheduler's from then on. A plugin that has one reads the time and
// sets timers by it alone, so that a simulation plays it in virtual time. Its
// methods may be called from any goroutine. The zero value is ready.
//
// The machine's time is read once, and counted on from there: the clock never
// jumps, whatever is done to the machine's. It goes back only where another run of
// a scheduler says an earlier time, which StateReset announces as a changed epoch.
//
//	own --Time--> told --Begin of a stream without Time--> own
//
// Timers keep what is left of them where the clock turns from one to the other.
type Clock struct {
	mutex sync.Mutex
	// began is when the machine's time was read.
	began time.Time
	// since is the time that has passed since then; a test has its own.
	since func(time.Time) time.Duration
	// told is the scheduler's time, nil while the clock is the plugin's own.
	told    *int64
	timers  timerHeap
	numbers int
	alarm   *time.Timer
	// do runs a function in the plugin's turn; nil before the plugin is served.
	do func(func())
}

// Timer is a function that waits for its time.
type Timer struct {
	clock     *Clock
	dueMicros int64
	number    int
	function  func()
}

// Cancel has the function not called; nothing happens where it was called, or
// cancelled, before.
func (t *Timer) Cancel() {
	t.clock.mutex.Lock()
	defer t.clock.mutex.Unlock()
	t.function = nil
}

// Now is what time it is.
func (c *Clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return time.UnixMicro(c.micros())
}

// After calls the function once so much time has passed: by itself, in its turn,
// as a call's function is.
func (c *Clock) After(wait time.Duration, function func()) *Timer {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.numbers++
	due := c.micros() + max(1, int64((wait+time.Microsecond-1)/time.Microsecond))
	timer := &Timer{clock: c, dueMicros: due, number: c.numbers, function: function}
	heap.Push(&c.timers, timer)
	if c.timers[0] == timer {
		c.arm()
	}
	return timer
}

// serve has timers run by that from now on.
func (c *Clock) serve(do func(func())) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.do = do
	c.arm()
}

// stop has none run by itself any more.
func (c *Clock) stop() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.do = nil
	c.disarm()
}

// reach has the clock stand at that time of the scheduler, after each timer that
// is due by then was called at its own. It gives when the next one is due, nil if
// none is. Called in the plugin's turn.
func (c *Clock) reach(micros int64) *int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.told == nil || micros < *c.told {
		c.turn(&micros)
	}
	for due := c.next(); due != nil && *due <= micros; due = c.next() {
		now := max(*due, *c.told)
		c.told = &now
		c.callNext()
	}
	c.told = &micros
	return c.next()
}

// own goes on by the machine's time.
func (c *Clock) own() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.told != nil {
		c.turn(nil)
		c.arm()
	}
}

// ring calls what is due by the machine's time. Called in the plugin's turn.
func (c *Clock) ring() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.told != nil {
		return
	}
	now := c.micros()
	for due := c.next(); due != nil && *due <= now; due = c.next() {
		c.callNext()
	}
	c.arm()
}

// The functions below are called with the mutex.

func (c *Clock) micros() int64 {
	if c.told != nil {
		return *c.told
	}
	if c.since == nil {
		c.since = time.Since // by the monotonic reading
	}
	if c.began.IsZero() {
		c.began = time.Now()
	}
	return c.began.UnixMicro() + c.since(c.began).Microseconds()
}

// turn counts by another time; timers keep what is left of them.
func (c *Clock) turn(told *int64) {
	c.disarm()
	before := c.micros()
	c.told = told
	shift := c.micros() - before
	for _, timer := range c.timers { // the order stays
		timer.dueMicros += shift
	}
}

// next is when the next timer is due, nil if none is set.
func (c *Clock) next() *int64 {
	for len(c.timers) > 0 && c.timers[0].function == nil {
		heap.Pop(&c.timers)
	}
	if len(c.timers) == 0 {
		return nil
	}
	due := c.timers[0].dueMicros
	return &due
}

func (c *Clock) callNext() {
	function := heap.Pop(&c.timers).(*Timer).function
	c.mutex.Unlock() // it may read the time, and set timers
	defer c.mutex.Lock()
	_ = guarded("timer", function) // what went wrong was logged
}

// arm wakes the plugin at the next timer's time, where the clock is its own.
func (c *Clock) arm() {
	c.disarm()
	due, do := c.next(), c.do
	if due == nil || do == nil || c.told != nil {
		return
	}
	wait := time.Duration(*due-c.micros()) * time.Microsecond
	c.alarm = time.AfterFunc(wait, func() { do(c.ring) })
}

func (c *Clock) disarm() {
	if c.alarm != nil {
		c.alarm.Stop()
		c.alarm = nil
	}
}

// timerHeap has the timer first that is due first.
type timerHeap []*Timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].dueMicros != h[j].dueMicros {
		return h[i].dueMicros < h[j].dueMicros
	}
	return h[i].number < h[j].number
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(*Timer)) }
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	timer := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return timer
}
