package berth

import (
	"slices"
	"testing"
	"time"
)

var noon = time.UnixMicro(1_800_000_000_000_000)

// alarms is a clock, and when its timers ran.
type alarms struct {
	Clock
	rang []time.Duration
}

func (a *alarms) set(wait time.Duration, then ...time.Duration) *Timer {
	return a.After(wait, func() {
		a.rang = append(a.rang, a.Now().Sub(noon))
		for _, each := range then {
			a.set(each)
		}
	})
}

func (a *alarms) at(t *testing.T, when time.Time, wake time.Duration) {
	t.Helper()
	due := a.reach(when.UnixMicro())
	if due == nil {
		if wake != 0 {
			t.Fatalf("no timer is set, want one at noon + %v", wake)
		}
		return
	}
	if got := time.UnixMicro(*due).Sub(noon); got != wake {
		t.Fatalf("the next timer is due at noon + %v, want + %v", got, wake)
	}
}

func (a *alarms) ran(t *testing.T, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(a.rang, want) {
		t.Fatalf("timers ran at noon + %v, want + %v", a.rang, want)
	}
}

func TestEachTimerRunsAtItsOwnTime(t *testing.T) {
	a := &alarms{}
	a.at(t, noon, 0)
	a.set(60 * time.Second)
	a.set(10*time.Second, 5*time.Second, 500*time.Second)
	a.set(20 * time.Second).Cancel()

	a.at(t, noon.Add(100*time.Second), 510*time.Second)

	a.ran(t, 10*time.Second, 15*time.Second, 60*time.Second)
	a.at(t, noon.Add(600*time.Second), 0)
}

func TestATimerThatSetsItselfAtOnceIsDueLater(t *testing.T) {
	a := &alarms{}
	a.at(t, noon, 0)
	a.set(0)

	a.at(t, noon, time.Microsecond)

	a.ran(t)
}

func TestAnotherCountKeepsWhatIsLeftOfTimers(t *testing.T) {
	a := &alarms{}
	a.at(t, noon, 0)
	a.set(time.Minute)

	a.at(t, noon.Add(-24*time.Hour), time.Minute-24*time.Hour)

	a.ran(t)
}

func TestATimerThatPanicsLeavesTheOthers(t *testing.T) {
	a := &alarms{}
	a.at(t, noon, 0)
	a.After(time.Second, func() { panic("broken") })
	a.set(2 * time.Second)

	a.at(t, noon.Add(2*time.Second), 0)

	a.ran(t, 2*time.Second)
}

func TestTheMachinesTimeIsReadOnceAndCountedOn(t *testing.T) {
	steady := time.Duration(0)
	clock := &Clock{began: noon, since: func(time.Time) time.Duration { return steady }}
	steady += 5 * time.Second

	if got := clock.Now(); !got.Equal(noon.Add(5 * time.Second)) {
		t.Errorf("it is %v: a step of the machine's clock was followed", got)
	}
}

func TestTimersOfTheMachinesTimeRunWhenTheyAreDue(t *testing.T) {
	clock, rang := &Clock{}, make(chan struct{})
	clock.After(time.Millisecond, func() { close(rang) })

	clock.serve(func(function func()) { function() })

	select {
	case <-rang:
	case <-time.After(time.Minute):
		t.Fatal("no timer ran")
	}
	clock.stop()
}

func TestAStreamWithoutTimeGivesTheMachinesBack(t *testing.T) {
	clock, rang := &Clock{}, make(chan struct{})
	clock.serve(func(function func()) { function() })
	clock.reach(noon.UnixMicro())
	clock.After(time.Millisecond, func() { close(rang) })

	clock.own()

	select {
	case <-rang:
	case <-time.After(time.Minute):
		t.Fatal("no timer ran")
	}
	clock.stop()
}
