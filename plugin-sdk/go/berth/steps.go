package berth

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

type stepKind uint8

const (
	nodeUpserted stepKind = iota
	nodeRemoved
	podUpserted
	podRemoved
	objectUpserted
	objectRemoved
)

// step is a change with its object decoded. For pods the name is the UID.
type step struct {
	kind   stepKind
	index  int
	name   string
	node   *corev1.Node
	placed *PlacedPod
	key    ObjectKey
	object json.RawMessage
}

// podDecoder decodes a pod's JSON, or knows it already.
type podDecoder func(uid string, data []byte) (*corev1.Pod, error)

func decodePod(_ string, data []byte) (*corev1.Pod, error) { return decode[corev1.Pod](data) }

// stepsOf decodes changes, in their order.
func stepsOf(changes []*pb.Change, pod podDecoder) ([]step, *syncError) {
	steps := make([]step, 0, len(changes))
	for _, change := range changes {
		made, err := stepOf(change, pod)
		if err != nil {
			return nil, err
		}
		steps = append(steps, made)
	}
	return steps, nil
}

func stepOf(change *pb.Change, pod podDecoder) (step, *syncError) {
	switch c := change.GetChange().(type) {
	case *pb.Change_NodeUpsert:
		node, err := decode[corev1.Node](c.NodeUpsert.Object)
		if err != nil {
			return step{}, badObject("node %q: %v", c.NodeUpsert.Name, err)
		}
		return step{kind: nodeUpserted, index: int(c.NodeUpsert.Index), name: c.NodeUpsert.Name, node: node}, nil
	case *pb.Change_NodeRemove:
		return step{kind: nodeRemoved, index: int(c.NodeRemove.Index), name: c.NodeRemove.Name}, nil
	case *pb.Change_PodUpsert:
		placed, err := placedPod(c.PodUpsert, pod)
		return step{kind: podUpserted, placed: placed}, err
	case *pb.Change_PodRemove:
		return step{kind: podRemoved, name: c.PodRemove.Uid}, nil
	case *pb.Change_ObjectUpsert:
		key := keyOf(c.ObjectUpsert.Key)
		if !json.Valid(c.ObjectUpsert.Object) {
			return step{}, badObject("%s %s/%s: no JSON", key.Resource, key.Namespace, key.Name)
		}
		return step{kind: objectUpserted, key: key, object: c.ObjectUpsert.Object}, nil
	case *pb.Change_ObjectRemove:
		return step{kind: objectRemoved, key: keyOf(c.ObjectRemove.Key)}, nil
	}
	return step{}, badObject("a change of an unknown kind")
}

func placedPod(upsert *pb.PodUpsert, pod podDecoder) (*PlacedPod, *syncError) {
	stage := PodStage(upsert.Stage)
	if stage < Assumed || stage > Nominated {
		return nil, badObject("pod %s: stage %d is none", upsert.Uid, upsert.Stage)
	}
	decoded, err := pod(upsert.Uid, upsert.Object)
	if err != nil {
		return nil, badObject("pod %s: %v", upsert.Uid, err)
	}
	return &PlacedPod{decoded, upsert.Uid, upsert.NodeName, stage, upsert.Attempt}, nil
}

func keyOf(key *pb.ObjectKey) ObjectKey {
	return ObjectKey{key.GetGroup(), key.GetVersion(), key.GetResource(), key.GetNamespace(), key.GetName()}
}

func badObject(format string, arguments ...any) *syncError {
	return outOfSync(pb.NackReason_NACK_REASON_BAD_OBJECT, format, arguments...)
}
