package main

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// happening is one call of an event handler.
type happening struct {
	what string
	key  string
	// What the handler was given last: the new object, or the deleted one.
	object any
}

// witness keeps what an informer shows its handlers, in order.
type witness struct {
	lock sync.Mutex
	all  []happening
	more chan struct{}
}

// follow starts to listen to an informer.
func follow(informer cache.SharedInformer) (*witness, error) {
	seen := &witness{more: make(chan struct{}, 1)}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen.note("added", object) },
		UpdateFunc: func(_, object any) { seen.note("updated", object) },
		DeleteFunc: func(object any) { seen.note("deleted", object) },
	})
	return seen, err
}

func (w *witness) note(what string, object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		key = err.Error()
	}
	w.lock.Lock()
	w.all = append(w.all, happening{what, key, object})
	w.lock.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// await gives the first happening of that sort to that object that is as wanted, now or later.
func (w *witness) await(ctx context.Context, what, key string, wanted func(any) bool) (any, error) {
	next := 0
	for {
		w.lock.Lock()
		seen := w.all[next:]
		next = len(w.all)
		w.lock.Unlock()
		for _, each := range seen {
			if each.what == what && each.key == key && wanted(each.object) {
				return each.object, nil
			}
		}
		select {
		case <-w.more:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s was not %s as wanted: %w", key, what, ctx.Err())
		}
	}
}

func anything(any) bool { return true }

// synced waits until informers hold what there was when they began.
func synced(ctx context.Context, informers ...cache.SharedInformer) error {
	for _, each := range informers {
		if !cache.WaitForCacheSync(ctx.Done(), each.HasSynced) {
			return fmt.Errorf("an informer did not sync: %w", ctx.Err())
		}
	}
	return nil
}
