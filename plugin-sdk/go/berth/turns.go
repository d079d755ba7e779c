package berth

import (
	"context"
	"sync"
)

// line lets one call at a time touch the session, in the order in which calls
// joined: the order of the stream is the order of the author's functions.
type line struct {
	mutex sync.Mutex
	last  <-chan struct{}
}

// turn is a place in the line: wait for it, then leave it.
type turn struct {
	before <-chan struct{}
	done   chan struct{}
}

func (l *line) join() *turn {
	joined := &turn{done: make(chan struct{})}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	joined.before, l.last = l.last, joined.done
	return joined
}

// wait returns nil when it is the turn's time. After an error the turn has been
// left already.
func (t *turn) wait(ctx context.Context) error {
	if t.before == nil {
		return nil
	}
	select {
	case <-t.before:
		return nil
	default:
	}
	select {
	case <-t.before:
		return nil
	case <-ctx.Done():
		go func() {
			<-t.before
			t.leave()
		}()
		return ctx.Err()
	}
}

func (t *turn) leave() { close(t.done) }

// place is a call's hold on the session: it can be given up and taken again.
type place struct {
	line *line
	turn *turn
	held bool
}

func (l *line) place() *place { return &place{line: l, turn: l.join()} }

func (p *place) enter(ctx context.Context) error {
	if err := p.turn.wait(ctx); err != nil {
		return err
	}
	p.held = true
	return nil
}

func (p *place) leave() {
	if p.held {
		p.held = false
		p.turn.leave()
	}
}

// enterAgain goes to the end of the line and waits.
func (p *place) enterAgain(ctx context.Context) error {
	p.turn = p.line.join()
	return p.enter(ctx)
}

// pause leaves, and returns when wake is closed and it is this place's time again.
func (p *place) pause(ctx context.Context, wake <-chan struct{}) error {
	p.leave()
	select {
	case <-wake:
		return p.enterAgain(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

type placeKey struct{}

// Await runs a function that waits for something outside the process, such as
// an answer over the network, while other calls of the plugin go on. What they
// change, the cluster's state included, may be different afterwards.
//
// The context is that of the function that was called. With any other Await just
// runs the function.
func Await(ctx context.Context, function func(ctx context.Context) error) error {
	held, _ := ctx.Value(placeKey{}).(*place)
	if held == nil || !held.held {
		return function(ctx)
	}
	held.leave()
	err := function(ctx)
	// The caller goes on to touch what is shared, so it must have its turn even if its call was cancelled.
	if again := held.enterAgain(context.WithoutCancel(ctx)); again != nil {
		return again
	}
	return err
}
