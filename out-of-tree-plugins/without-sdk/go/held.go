package main

import (
	"encoding/json"
	"errors"
	"fmt"

	pb "berth.dev/same-label/pluginv1"
)

// refused is a message of the stream that cannot be applied.
type refused struct {
	reason  pb.NackReason
	message string
}

func (r *refused) Error() string { return r.message }

func refuse(reason pb.NackReason, format string, values ...any) error {
	return &refused{reason, fmt.Sprintf(format, values...)}
}

type node struct {
	name   string
	labels map[string]string
}

// held has all nodes by index, up to one generation; generation 0 means that
// nothing is held.
type held struct {
	epoch      string
	generation int64
	// The first generation since which no node has changed its index.
	indicesSince int64
	nodes        []node
}

// transferred returns what a full transfer brought.
func transferred(epoch string, commit *pb.Commit, changes []*pb.Change) (held, error) {
	state := held{epoch: epoch, generation: commit.Generation, indicesSince: commit.Generation}
	_, err := state.apply(changes, commit.NodeCount)
	return state, err
}

// follow takes one step. A step that is held already is skipped.
func (h *held) follow(delta *pb.Delta) error {
	if delta.Generation <= h.generation {
		return nil
	}
	if delta.BaseGeneration != h.generation {
		return refuse(pb.NackReason_NACK_REASON_GAP, "%d is held, not %d", h.generation, delta.BaseGeneration)
	}
	moved, err := h.apply(delta.Changes, delta.NodeCount)
	if err != nil {
		return err
	}
	if moved {
		h.indicesSince = delta.Generation
	}
	h.generation = delta.Generation
	return nil
}

// apply takes the changes in order, and returns whether indices are others than before.
func (h *held) apply(changes []*pb.Change, nodeCount uint32) (bool, error) {
	before, removed := len(h.nodes), false
	for _, change := range changes {
		var err error
		// Pods and objects of other kinds were not asked for.
		switch {
		case change.GetNodeUpsert() != nil:
			err = h.put(change.GetNodeUpsert())
		case change.GetNodeRemove() != nil:
			removed, err = true, h.remove(change.GetNodeRemove())
		}
		if err != nil {
			return false, err
		}
	}
	if len(h.nodes) != int(nodeCount) {
		return false, refuse(pb.NackReason_NACK_REASON_MISMATCH, "%d nodes are held, not %d", len(h.nodes), nodeCount)
	}
	return removed || before != len(h.nodes), nil
}

func (h *held) put(upsert *pb.NodeUpsert) error {
	labels, err := labelsOf(upsert.Object)
	if err != nil {
		return refuse(pb.NackReason_NACK_REASON_BAD_OBJECT, "%s: %v", upsert.Name, err)
	}
	row := node{upsert.Name, labels}
	if int(upsert.Index) == len(h.nodes) {
		h.nodes = append(h.nodes, row)
		return nil
	}
	if err := h.checkName(upsert.Index, upsert.Name); err != nil {
		return err
	}
	h.nodes[upsert.Index] = row
	return nil
}

func (h *held) remove(removal *pb.NodeRemove) error {
	if err := h.checkName(removal.Index, removal.Name); err != nil {
		return err
	}
	last := len(h.nodes) - 1
	h.nodes[removal.Index] = h.nodes[last]
	h.nodes = h.nodes[:last]
	return nil
}

func (h *held) checkName(index uint32, name string) error {
	if int(index) >= len(h.nodes) || h.nodes[index].name != name {
		return refuse(pb.NackReason_NACK_REASON_MISMATCH, "%s is not at %d", name, index)
	}
	return nil
}

// labelsOf returns the labels of an API object's JSON, which is all that the
// plugin reads of nodes and pods.
func labelsOf(object []byte) (map[string]string, error) {
	var document struct {
		Metadata *struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &document); err != nil {
		return nil, err
	}
	if document.Metadata == nil {
		return nil, errors.New("an object lacks its metadata")
	}
	return document.Metadata.Labels, nil
}
