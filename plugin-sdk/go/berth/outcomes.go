package berth

import (
	"fmt"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// Code is the outcome of an extension point, in kube-scheduler's words.
type Code int32

// The outcomes that authors give; Wait is for PlacementFeasible alone: Permit says it with a duration.
const (
	Success                      = Code(pb.Code_CODE_SUCCESS)
	Error                        = Code(pb.Code_CODE_ERROR)
	Unschedulable                = Code(pb.Code_CODE_UNSCHEDULABLE)
	UnschedulableAndUnresolvable = Code(pb.Code_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE)
	Skip                         = Code(pb.Code_CODE_SKIP)
	Pending                      = Code(pb.Code_CODE_PENDING)
	Wait                         = Code(pb.Code_CODE_WAIT)
)

// String gives the name on the wire.
func (c Code) String() string { return pb.Code(c).String() }

// Status is a verdict on the pod as a whole; nil lets it pass.
type Status struct {
	Code    Code
	Reasons []string
}

// NewStatus makes a verdict: Unschedulable and UnschedulableAndUnresolvable turn
// the pod down, Pending does until Requeue says otherwise and then without
// backoff, Skip says that the plugin has no opinion.
func NewStatus(code Code, reasons ...string) *Status { return &Status{code, reasons} }

// Errorf ends the attempt with an error; the pod is tried again after backoff.
func Errorf(format string, arguments ...any) *Status {
	return NewStatus(Error, fmt.Sprintf(format, arguments...))
}

func (s *Status) code() Code {
	if s == nil {
		return Success
	}
	return s.Code
}

// Reason is why a node is turned down; equal for all the nodes it applies to.
// The zero Code stands for Unschedulable.
type Reason struct {
	Text string
	Code Code
}

// Reject makes the reason for nodes on which evicting pods, or an event, may help.
func Reject(text string) *Reason { return NewReason(Unschedulable, text) }

// NewReason makes a reason of Unschedulable, or of UnschedulableAndUnresolvable
// where evicting pods would not help.
func NewReason(code Code, text string) *Reason { return &Reason{text, code} }

// Verdicts holds a code for each node: 0 passes, k is Reasons[k-1].
// Entries of nodes that were not asked about carry no meaning.
type Verdicts struct {
	Codes   []uint8
	Reasons []Reason
}

// Normalization is how the scheduler maps raw scores over the nodes that are
// left to 0 to 100.
type Normalization int32

// NormalizationNone takes scores of 0 to 100; Max divides by the highest;
// MaxReverse does so and turns the order round; MinMax stretches from lowest to
// highest.
const (
	NormalizationNone       = Normalization(0)
	NormalizationMax        = Normalization(pb.Normalization_NORMALIZATION_MAX)
	NormalizationMaxReverse = Normalization(pb.Normalization_NORMALIZATION_MAX_REVERSE)
	NormalizationMinMax     = Normalization(pb.Normalization_NORMALIZATION_MIN_MAX)
)

func (n Normalization) message() pb.Normalization {
	if n == NormalizationNone {
		return pb.Normalization_NORMALIZATION_NONE
	}
	return pb.Normalization(n)
}

// MetadataPatch is what the scheduler writes to the pod before it binds; a nil
// value removes the key.
type MetadataPatch struct {
	Annotations map[string]*string `json:"annotations,omitempty"`
	Labels      map[string]*string `json:"labels,omitempty"`
}

// Annotate makes the patch that sets one annotation.
func Annotate(key, value string) *MetadataPatch {
	return &MetadataPatch{Annotations: map[string]*string{key: &value}}
}

// Nomination is PostFilter's answer: the node where room is made, and the pods
// that have to go first. Without a node what is nominated is kept, unless Clear
// takes it back.
type Nomination struct {
	NodeName   string
	VictimUIDs []string
	Clear      bool
}

// PodKey is one attempt at one pod; what is held for a pod is held under UID and
// Attempt.
type PodKey struct {
	UID       string
	Attempt   uint32
	Namespace string
	Name      string
}

// String gives namespace/name.
func (k PodKey) String() string { return k.Namespace + "/" + k.Name }

// Profile is the scheduler profile that uses the plugin. In a shadow profile
// answers are compared and counted, and change nothing.
type Profile struct {
	Name   string
	Shadow bool
}

// PodStage is why a pod counts on a node.
type PodStage int32

// The stages of a pod on its way to a node.
const (
	Assumed   = PodStage(pb.PodStage_POD_STAGE_ASSUMED)
	Placed    = PodStage(pb.PodStage_POD_STAGE_PLACED)
	Nominated = PodStage(pb.PodStage_POD_STAGE_NOMINATED)
)

// CycleOutcome is how a scheduling attempt ended.
type CycleOutcome int32

// The ends of an attempt.
const (
	OutcomeBound         = CycleOutcome(pb.CycleOutcome_CYCLE_OUTCOME_BOUND)
	OutcomeUnschedulable = CycleOutcome(pb.CycleOutcome_CYCLE_OUTCOME_UNSCHEDULABLE)
	OutcomeFailed        = CycleOutcome(pb.CycleOutcome_CYCLE_OUTCOME_FAILED)
	OutcomeAborted       = CycleOutcome(pb.CycleOutcome_CYCLE_OUTCOME_ABORTED)
)

// Outcome is an attempt's end as CycleDone gets it. Rejected says that
// this plugin is among those that turned the pod down.
type Outcome struct {
	Result   CycleOutcome
	NodeName string
	Rejected bool
}
