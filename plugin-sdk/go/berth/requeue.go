package berth

import (
	"maps"
	"slices"
	"sync"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// Requeue is the plugin's own way to speak to the scheduler, from any goroutine
// and at any time. What is said while no scheduler listens is lost: it starts by
// trying everything anyway. The zero value is ready.
type Requeue struct {
	mutex     sync.Mutex
	listeners map[*listener]struct{}
	// lastNumber is that of what was said last, 0 if nothing was.
	lastNumber uint64
}

// Pods has these pods tried again, by UID.
func (r *Requeue) Pods(cause string, uids ...string) {
	r.say(&pb.RequeueResponse{Action: &pb.RequeueResponse_Requeue{Requeue: &pb.PodSet{Uids: uids}}, Cause: cause})
}

// AllRejected has all pods tried again that this plugin rejected.
func (r *Requeue) AllRejected(cause string) {
	r.say(&pb.RequeueResponse{Action: &pb.RequeueResponse_RequeueAll{RequeueAll: &pb.AllRejected{}}, Cause: cause})
}

// Allow lets pods go on that wait at Permit.
func (r *Requeue) Allow(cause string, uids ...string) {
	set := &pb.RequeueResponse_AllowWaiting{AllowWaiting: &pb.PodSet{Uids: uids}}
	r.say(&pb.RequeueResponse{Action: set, Cause: cause})
}

// Reject stops pods that wait at Permit; their attempt fails.
func (r *Requeue) Reject(cause string, uids ...string) {
	set := &pb.RequeueResponse_RejectWaiting{RejectWaiting: &pb.PodSet{Uids: uids}}
	r.say(&pb.RequeueResponse{Action: set, Cause: cause})
}

// keysAMessage is how many sort keys the scheduler reads in a message.
const keysAMessage = 4096

// SortKeys has pods sorted by these keys from now on, by UID.
//
// Errors: a key has too many parts; nothing is said then.
func (r *Requeue) SortKeys(cause string, keys map[string][]int64) error {
	for uid, key := range keys {
		if len(key) > keyParts {
			return broken("the sort key of pod %s has %d parts, at most %d are compared", uid, len(key), keyParts)
		}
	}
	for uids := range slices.Chunk(slices.Sorted(maps.Keys(keys)), keysAMessage) {
		changed := &pb.PodSortKeys{Uids: uids}
		for _, uid := range uids {
			changed.Keys = append(changed.Keys, &pb.SortKey{Parts: keys[uid]})
		}
		r.say(&pb.RequeueResponse{Action: &pb.RequeueResponse_SortKeys{SortKeys: changed}, Cause: cause})
	}
	return nil
}

func (r *Requeue) say(message *pb.RequeueResponse) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lastNumber++
	message.Number = r.lastNumber
	for each := range r.listeners {
		each.add(message)
	}
}

// last is the number of what was said last. A plugin need not have a Requeue.
func (r *Requeue) last() uint64 {
	if r == nil {
		return 0
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.lastNumber
}

// listener is one scheduler's queue of messages; it never makes the speaker wait.
type listener struct {
	mutex    sync.Mutex
	messages []*pb.RequeueResponse
	filled   chan struct{} // holds a token while there are messages
}

func (l *listener) add(message *pb.RequeueResponse) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.messages = append(l.messages, message)
	select {
	case l.filled <- struct{}{}:
	default:
	}
}

func (l *listener) take() []*pb.RequeueResponse {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	taken := l.messages
	l.messages = nil
	return taken
}

// listen gives a queue of what is said from now on, and what ends it.
func (r *Requeue) listen() (*listener, func()) {
	made := &listener{filled: make(chan struct{}, 1)}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.listeners == nil {
		r.listeners = map[*listener]struct{}{}
	}
	r.listeners[made] = struct{}{}
	return made, func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		delete(r.listeners, made)
	}
}
