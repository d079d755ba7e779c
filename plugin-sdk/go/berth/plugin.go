package berth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Plugin is a scheduler plugin. Fill in what you need: a function that is there
// is announced, one that is nil is not called.
//
// Functions are called one at a time. Those with a context may wait for
// something outside the process with [Await]; [CurrentCall] gives profile and
// attempt.
type Plugin struct {
	// Name is a DNS label: what profiles call the plugin.
	Name    string
	Version string
	// Arguments takes over what profiles configure; see [ArgumentsOf]. Without
	// it a profile that gives arguments is refused.
	Arguments Arguments
	// ProfileRemoved hears that a profile doesn't use the plugin any more.
	ProfileRemoved func(profile string)

	// PreEnqueue answers whether the pod may enter the queue.
	PreEnqueue func(ctx context.Context, pod *corev1.Pod) *Status
	// PreFilter answers for the pod before any node is looked at; Skip: there is
	// nothing to filter.
	PreFilter func(ctx context.Context, pod *corev1.Pod) *Status
	// Filter answers nil if the node can take the pod, else why not.
	Filter func(pod *corev1.Pod, node *corev1.Node) *Reason
	// FilterNodes answers for all nodes at once, with an entry for each node,
	// asked about or not: nodes.Verdicts makes the answer. Where nodes.IsAsked is
	// false the entry is ignored. It wins over Filter.
	FilterNodes func(pod *corev1.Pod, nodes *Nodes) Verdicts
	// PostFilter makes room somewhere after no node was left. A nil nomination
	// and a nil status: something was done, nothing is nominated.
	PostFilter func(ctx context.Context, pod *corev1.Pod, nodes *Nodes, verdicts Verdicts) (*Nomination, *Status)
	// Score says how good the node is for the pod, 0 to 100 unless Normalization
	// says otherwise.
	Score func(pod *corev1.Pod, node *corev1.Node) int64
	// ScoreNodes scores all nodes at once, with an entry for each node, asked about
	// or not: nodes.Scores makes the answer. nil: no opinion on this pod. It wins
	// over Score.
	ScoreNodes func(pod *corev1.Pod, nodes *Nodes) []int64
	// Normalization is what the scheduler does with the scores.
	Normalization Normalization

	// Reserve sets aside what the pod will use, under CurrentCall's key;
	// repeating it changes nothing. A patch accepts, and is written in PreBind's
	// place, which is then called after a lost connection only.
	Reserve func(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (*MetadataPatch, *Status)
	// Unreserve gives it back; unknown keys and old attempts are to be ignored.
	Unreserve func(ctx context.Context, key PodKey, nodeName string)
	// Permit lets the pod go on, stops it, or makes it wait so long; Requeue ends
	// the wait earlier.
	Permit func(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (time.Duration, *Status)
	// PreBind prepares the binding, or has annotations and labels written.
	PreBind func(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (*MetadataPatch, *Status)
	// Bind writes the binding in the scheduler's place; Skip leaves it to the next
	// binder.
	Bind func(ctx context.Context, pod *corev1.Pod, node *corev1.Node, annotations map[string]string) *Status
	// PostBind hears that the pod was bound.
	PostBind func(ctx context.Context, key PodKey, nodeName string)
	// CycleDone hears what became of an attempt.
	CycleDone func(ctx context.Context, key PodKey, outcome Outcome)

	// QueueingHint answers whether the event may let the pod fit, which this
	// plugin rejected.
	QueueingHint func(pod *corev1.Pod, event Event) bool
	// QueueingHints answers for all pairs at once, a row an event, a column a
	// pod. It wins over QueueingHint.
	QueueingHints func(pods []*corev1.Pod, events []Event) [][]bool
	// SortKey says where the pod stands in the queue, the lowest key first: at
	// most 8 numbers, compared in order. It is asked once for each version of the
	// pod; Requeue.SortKeys gives other keys later. A failure is logged, and the pod
	// has the key 0.
	SortKey func(pod *corev1.Pod) []int64
	// PodsLeft hears of pods that SortKey was asked about and that wait no more.
	PodsLeft func(uids []string)
	// QueueReset hears that the profile's pods which SortKey was asked about are to
	// be forgotten: all that wait are asked about anew.
	QueueReset func(profile string)
	// GeneratePlacements says which sets of nodes the group may go to as a whole, in
	// the order in which they are tried; pod is the first of its pods. Skip: no
	// opinion; Unschedulable: it can go nowhere. Nodes that were not asked about are
	// left out, and so is a set that has no node then.
	GeneratePlacements func(group *PodGroup, pod *corev1.Pod, nodes *Nodes) ([]Placement, *Status)
	// ScorePlacements scores the placements in which the group fits, each by itself,
	// 0 to 100 unless Normalization says otherwise; nil: no opinion.
	ScorePlacements func(group *PodGroup, pod *corev1.Pod, nodes *Nodes, proposed []ProposedPlacement) []int64
	// PlacementFeasible says whether the group may go as it stands; its other pods
	// are tried all the same. Wait: not yet; Unschedulable: it may not, however many
	// of the remaining pods find a node. The answer counts for the attempt, wherever
	// the pods go.
	PlacementFeasible func(group *PodGroup, pod *corev1.Pod, progress PlacementProgress) *Status
	// PodGroupPostFilter proposes evictions for a group that fits nowhere, the best
	// first, at most 16: the scheduler has the first carried out by which the group
	// fits. None, without a status: room is on its way. Unschedulable: the next
	// plugin is asked; UnschedulableAndUnresolvable: none is.
	// The verdicts are those on the first of its pods that found no node.
	PodGroupPostFilter func(group *PodGroup, pod *corev1.Pod, nodes *Nodes, verdicts Verdicts) ([]GroupPreemption, *Status)
	// Events are the cluster events that matter to rejected pods.
	Events []EventInterest
	// Requeue is the plugin's own way to speak to the scheduler.
	Requeue *Requeue
	// Clock is all that the plugin knows of time: it reads no other, and sets no
	// timers but by it. A simulation plays such a plugin in virtual time.
	Clock *Clock

	// WantsPods mirrors placed and assumed pods; PodResources narrows that to
	// pods that request one of these.
	WantsPods    bool
	PodResources []string
	// PodsWithoutStatus says that a mirrored pod's status may be an old one:
	// pods that changed in nothing else are not brought again.
	PodsWithoutStatus bool
	// WantsNominations mirrors nominated pods too.
	WantsNominations bool
	// Resources are other kinds to mirror.
	Resources []WatchedResource

	// StateReset hears that all nodes, pods and objects are forgotten and the
	// present ones follow. A changed epoch is another run of the scheduler: its
	// attempts are void, and so is what is held for them.
	StateReset func(epochChanged bool)
	// StateSettled hears that a full transfer is complete.
	StateSettled func()
	// NodeUpserted brings a new node at index n, or a changed one at its index.
	NodeUpserted func(index int, node *corev1.Node)
	// NodeRemoved drops the node at index; the one at last moves there.
	NodeRemoved func(index, last int)
	// PodUpserted brings a pod that counts on a node, or a change of it.
	PodUpserted func(placed *PlacedPod)
	// PodRemoved drops a pod that no longer counts.
	PodRemoved func(placed *PlacedPod)
	// ObjectUpserted brings an object of one of Resources, as JSON. An error says
	// that it can't be used; the state is then asked for anew.
	ObjectUpserted func(key ObjectKey, object json.RawMessage) error
	// ObjectRemoved drops one.
	ObjectRemoved func(key ObjectKey)

	// Metrics gives what the plugin counts itself, shown at /metrics behind what
	// the SDK counts.
	Metrics func() []Metric
	// State gives how things stand inside, shown at /state as JSON.
	State func() any

	// PodFields are JSON pointers of all pod fields the verdicts depend on; nil:
	// any, empty: none.
	PodFields []string
	// NodeLocal: verdict and score of a node depend on the pod, the node and the
	// mirrored pods on it alone. Without WantsPods such a plugin is asked nothing
	// because a pod was placed.
	NodeLocal bool
	// ScoreNeedsFeasible: Score must see exactly the nodes that all filters left.
	ScoreNeedsFeasible bool
	// WantedDeadline is the time wanted for a call; zero: the scheduler's default.
	WantedDeadline time.Duration
	// WantedDeadlines are the times wanted at single points, by the name of a
	// function there: {"PreBind": 5 * time.Second}.
	WantedDeadlines map[string]time.Duration

	served *session
}

// Do runs a function as one that a call would run: by itself, in its turn. It is
// for the plugin's own goroutines and timers, and may not be called from a
// function that answers a call.
func (p *Plugin) Do(function func()) {
	if p.served == nil {
		function()
		return
	}
	here := p.served.line.place()
	_ = here.enter(context.Background()) // nothing ends this context
	defer here.leave()
	_ = guarded("Do", function)
}

// WatchedResource is a kind beside nodes and pods. Group is empty for core,
// Resource the plural; an empty selector takes all.
type WatchedResource struct {
	Group, Version, Resource string
	LabelSelector            string
}

// Validate says what the scheduler could not work with; nil if all is well.
func (p *Plugin) Validate() error {
	var problems []error
	complain := func(wrong bool, format string, arguments ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("plugin %q: "+format, append([]any{p.Name}, arguments...)...))
		}
	}
	complain(!dnsLabel.MatchString(p.Name), "the name is no DNS label")
	complain(!p.WantsPods && !p.WantsNominations && (p.PodUpserted != nil || p.PodRemoved != nil), "PodUpserted and PodRemoved need WantsPods or WantsNominations")
	complain(!p.WantsPods && len(p.PodResources) > 0, "PodResources narrows WantsPods, which is not set")
	complain((p.Reserve == nil) != (p.Unreserve == nil), "Reserve and Unreserve go together")
	complain(p.SortKey == nil && (p.PodsLeft != nil || p.QueueReset != nil), "PodsLeft and QueueReset need SortKey")
	complain(p.WantedDeadline < 0, "WantedDeadline is negative")
	for name, wanted := range p.WantedDeadlines {
		_, known := pointOf[name]
		complain(!known, "WantedDeadlines[%q]: no extension point has such a function", name)
		complain(wanted <= 0, "WantedDeadlines[%q] is not above 0", name)
	}
	for i, event := range p.Events {
		complain(event.Resource == "" || len(event.Actions) == 0, "Events[%d] needs a resource and actions", i)
	}
	for i, kind := range p.Resources {
		complain(kind.Version == "" || kind.Resource == "", "Resources[%d] needs a version and a plural", i)
	}
	return errors.Join(problems...)
}
