// The I/O of kube-scheduler v1.36, done by the library that kube-scheduler does it with, against an API server.
//
//	client_go [-kubeconfig FILE] [-content-type TYPE] CLAIM
//
// Each claim is a sentence about the API server. The program holds it against the server, and ends with exit
// code 1 and the reason where it is not so. Without a claim it lists them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Generous: a server that was restarted on a busy machine is found again after a backoff of up to half a minute.
const deadline = 4 * time.Minute

// Has informers list before they watch, as they did before version 1.35.
var listing = map[string]string{"KUBE_FEATURE_WatchListClient": "false"}

type claim struct {
	name, sentence string
	check          func(context.Context, *server) error
	// What the library learns from its environment.
	environment map[string]string
}

var claims = []claim{
	{
		name:     "informers-by-watch-list",
		sentence: "each informer of kube-scheduler fills itself from one watch, and follows what happens",
		check:    followEveryKind(byWatchList),
	},
	{
		name:        "informers-by-list",
		sentence:    "each informer of kube-scheduler fills itself from a list, and follows what happens",
		check:       followEveryKind(byList),
		environment: listing,
	},
	{
		name:     "finished-pods",
		sentence: "a pod that has finished leaves an informer that selects by phase",
		check:    finishedPodsLeave,
	},
	{
		name:     "bookmarks",
		sentence: "a watch marks where its first objects end, and before it ends how far it has come",
		check:    bookmarksAreTyped,
	},
	{
		name:     "pages",
		sentence: "a list is read page by page, as of its first page",
		check:    pagesAreConsistent,
	},
	{
		name:     "reconnect-by-watch-list",
		sentence: "an informer that lost its server has all objects streamed again by the next one, and learns what it missed",
		check:    reconnect(byWatchList),
	},
	{
		name:        "reconnect-by-list",
		sentence:    "an informer that lost its server lists again from the next one, which no longer knows its revision",
		check:       reconnect(byList),
		environment: listing,
	},
	{
		name:     "custom-resources",
		sentence: "a dynamic informer follows custom resources",
		check:    followCustomResources,
	},
	{
		name:     "election",
		sentence: "a lease is acquired, renewed and released; a second candidate takes over, also from one that died",
		check:    elect,
	},
	{
		name:     "events",
		sentence: "an event is recorded once, and its repetition as a series",
		check:    recordEvents,
	},
	{
		name:     "scheduling",
		sentence: "pods are bound once each, or rejected on every node and bound when they do",
		check:    scheduleAll,
	},
	{
		name:     "preemption",
		sentence: "a victim is marked and deleted, under preconditions, and a budget turns an eviction down",
		check:    evict,
	},
	{
		name:     "volumes",
		sentence: "claims and volumes are updated, unless they have changed in between",
		check:    bindVolumes,
	},
	{
		name:     "resource-claims",
		sentence: "a resource claim is allocated and reserved through its status",
		check:    allocate,
	},
	{
		name:     "delegated-access",
		sentence: "who asks, and what they may, is looked up as kube-scheduler's own port does it",
		check:    delegateAccess,
	},
	{
		name:     "discovery",
		sentence: "version and discovery tell of every kind that kube-scheduler watches",
		check:    discover,
	},
}

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	contentType := flag.String("content-type", runtime.ContentTypeProtobuf, "in what form objects are sent")
	flag.Parse()
	if flag.NArg() == 0 {
		list()
		return
	}
	if err := hold(*kubeconfig, *contentType, flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", flag.Arg(0), err)
		os.Exit(1)
	}
}

func list() {
	for _, each := range claims {
		fmt.Printf("%s\t%s\n", each.name, each.sentence)
	}
}

func hold(kubeconfig, contentType, name string) error {
	for _, each := range claims {
		if each.name != name {
			continue
		}
		// Before the library is first used: it reads its gates once.
		for key, value := range each.environment {
			if err := os.Setenv(key, value); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		at, err := connect(ctx, kubeconfig, contentType, name)
		if err != nil {
			return err
		}
		return each.check(ctx, at)
	}
	return errors.New("no such claim")
}
