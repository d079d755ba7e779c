package berth

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// Action is what happened to an object.
type Action int32

// The actions, in kube-scheduler's words.
const (
	Add                                = Action(pb.ActionType_ACTION_TYPE_ADD)
	Delete                             = Action(pb.ActionType_ACTION_TYPE_DELETE)
	Update                             = Action(pb.ActionType_ACTION_TYPE_UPDATE)
	UpdateNodeAllocatable              = Action(pb.ActionType_ACTION_TYPE_UPDATE_NODE_ALLOCATABLE)
	UpdateNodeLabel                    = Action(pb.ActionType_ACTION_TYPE_UPDATE_NODE_LABEL)
	UpdateNodeTaint                    = Action(pb.ActionType_ACTION_TYPE_UPDATE_NODE_TAINT)
	UpdateNodeCondition                = Action(pb.ActionType_ACTION_TYPE_UPDATE_NODE_CONDITION)
	UpdateNodeAnnotation               = Action(pb.ActionType_ACTION_TYPE_UPDATE_NODE_ANNOTATION)
	UpdateNodeDeclaredFeature          = Action(pb.ActionType_ACTION_TYPE_UPDATE_NODE_DECLARED_FEATURE)
	UpdatePodLabel                     = Action(pb.ActionType_ACTION_TYPE_UPDATE_POD_LABEL)
	UpdatePodScaleDown                 = Action(pb.ActionType_ACTION_TYPE_UPDATE_POD_SCALE_DOWN)
	UpdatePodToleration                = Action(pb.ActionType_ACTION_TYPE_UPDATE_POD_TOLERATION)
	UpdatePodSchedulingGatesEliminated = Action(pb.ActionType_ACTION_TYPE_UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
	UpdatePodGeneratedResourceClaim    = Action(pb.ActionType_ACTION_TYPE_UPDATE_POD_GENERATED_RESOURCE_CLAIM)
)

// EventInterest is a set of cluster events that may let a pod fit which this
// plugin rejected; all given conditions must hold.
type EventInterest struct {
	// Resource is "Node", "Pod", or a watched kind as "podgroups.v1alpha1.group".
	Resource string
	Actions  []Action
	// ChangedFields are JSON pointers of which one must have changed.
	ChangedFields []string
	LabelSelector string
	// PodResources are resources of which the pod of the event must request one.
	PodResources []string
	// SameNamespace, EqualLabels and PodLabelNamesObject tie the object to the
	// waiting pod: by namespace, by labels that both carry, by its name.
	SameNamespace       bool
	EqualLabels         []string
	PodLabelNamesObject string
	// NoHint: these conditions suffice, the hint function is not asked.
	NoHint bool
}

func (e EventInterest) message(hints bool) *pb.EventInterest {
	message := &pb.EventInterest{
		Resource:      e.Resource,
		ChangedFields: e.ChangedFields,
		PodResources:  e.PodResources,
		AskHint:       hints && !e.NoHint,
		SameNamespace: e.SameNamespace,
		EqualLabels:   e.EqualLabels,
	}
	for _, action := range e.Actions {
		message.Actions = append(message.Actions, pb.ActionType(action))
	}
	if e.LabelSelector != "" {
		message.LabelSelector = &e.LabelSelector
	}
	if e.PodLabelNamesObject != "" {
		message.PodLabelNamesObject = &e.PodLabelNamesObject
	}
	return message
}

// Event is something that happened to an object. Old and New are its JSON, nil
// where there is none.
type Event struct {
	Resource string
	Action   Action
	Old, New json.RawMessage
}

// Nodes decodes the event's object as a node, before and after; nil where there
// is none.
func (e Event) Nodes() (before, after *corev1.Node, err error) { return both[corev1.Node](e) }

// Pods decodes the event's object as a pod, before and after; nil where there is
// none.
func (e Event) Pods() (before, after *corev1.Pod, err error) { return both[corev1.Pod](e) }

func both[T any](e Event) (before, after *T, err error) {
	if before, err = decodeOptional[T](e.Old); err != nil {
		return nil, nil, err
	}
	after, err = decodeOptional[T](e.New)
	return before, after, err
}

func decodeOptional[T any](data json.RawMessage) (*T, error) {
	if data == nil {
		return nil, nil
	}
	return decode[T](data)
}

func decode[T any](data []byte) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(data, object); err != nil {
		return nil, err
	}
	return object, nil
}
