package berth

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// points lists what the plugin has functions for.
func (p *Plugin) points() []pb.ExtensionPoint {
	var points []pb.ExtensionPoint
	offer := func(served bool, point pb.ExtensionPoint) {
		if served {
			points = append(points, point)
		}
	}
	offer(p.PreEnqueue != nil, pb.ExtensionPoint_EXTENSION_POINT_PRE_ENQUEUE)
	offer(p.filters(), pb.ExtensionPoint_EXTENSION_POINT_FILTER)
	offer(p.overlays(), pb.ExtensionPoint_EXTENSION_POINT_FILTER_OVERLAYS)
	offer(p.PostFilter != nil, pb.ExtensionPoint_EXTENSION_POINT_POST_FILTER)
	offer(p.scores(), pb.ExtensionPoint_EXTENSION_POINT_SCORE)
	offer(p.Reserve != nil || p.Unreserve != nil, pb.ExtensionPoint_EXTENSION_POINT_RESERVE)
	offer(p.Permit != nil, pb.ExtensionPoint_EXTENSION_POINT_PERMIT)
	offer(p.PreBind != nil, pb.ExtensionPoint_EXTENSION_POINT_PRE_BIND)
	offer(p.Bind != nil, pb.ExtensionPoint_EXTENSION_POINT_BIND)
	offer(p.PostBind != nil, pb.ExtensionPoint_EXTENSION_POINT_POST_BIND)
	offer(p.CycleDone != nil, pb.ExtensionPoint_EXTENSION_POINT_CYCLE_DONE)
	offer(p.SortKey != nil, pb.ExtensionPoint_EXTENSION_POINT_QUEUE_SORT)
	offer(p.GeneratePlacements != nil, pb.ExtensionPoint_EXTENSION_POINT_PLACEMENT_GENERATE)
	offer(p.ScorePlacements != nil, pb.ExtensionPoint_EXTENSION_POINT_PLACEMENT_SCORE)
	offer(p.PlacementFeasible != nil, pb.ExtensionPoint_EXTENSION_POINT_PLACEMENT_FEASIBLE)
	offer(p.PodGroupPostFilter != nil, pb.ExtensionPoint_EXTENSION_POINT_POD_GROUP_POST_FILTER)
	offer(p.hints(), pb.ExtensionPoint_EXTENSION_POINT_QUEUEING_HINTS)
	offer(p.Requeue != nil, pb.ExtensionPoint_EXTENSION_POINT_REQUEUE)
	return points
}

// pointOf names the points that a plugin may want more time at by its functions.
var pointOf = map[string]pb.ExtensionPoint{
	"PreEnqueue":         pb.ExtensionPoint_EXTENSION_POINT_PRE_ENQUEUE,
	"PreFilter":          pb.ExtensionPoint_EXTENSION_POINT_FILTER,
	"Filter":             pb.ExtensionPoint_EXTENSION_POINT_FILTER,
	"FilterNodes":        pb.ExtensionPoint_EXTENSION_POINT_FILTER,
	"PostFilter":         pb.ExtensionPoint_EXTENSION_POINT_POST_FILTER,
	"Score":              pb.ExtensionPoint_EXTENSION_POINT_SCORE,
	"ScoreNodes":         pb.ExtensionPoint_EXTENSION_POINT_SCORE,
	"Reserve":            pb.ExtensionPoint_EXTENSION_POINT_RESERVE,
	"Permit":             pb.ExtensionPoint_EXTENSION_POINT_PERMIT,
	"PreBind":            pb.ExtensionPoint_EXTENSION_POINT_PRE_BIND,
	"Bind":               pb.ExtensionPoint_EXTENSION_POINT_BIND,
	"PostBind":           pb.ExtensionPoint_EXTENSION_POINT_POST_BIND,
	"CycleDone":          pb.ExtensionPoint_EXTENSION_POINT_CYCLE_DONE,
	"SortKey":            pb.ExtensionPoint_EXTENSION_POINT_QUEUE_SORT,
	"GeneratePlacements": pb.ExtensionPoint_EXTENSION_POINT_PLACEMENT_GENERATE,
	"ScorePlacements":    pb.ExtensionPoint_EXTENSION_POINT_PLACEMENT_SCORE,
	"PlacementFeasible":  pb.ExtensionPoint_EXTENSION_POINT_PLACEMENT_FEASIBLE,
	"PodGroupPostFilter": pb.ExtensionPoint_EXTENSION_POINT_POD_GROUP_POST_FILTER,
	"QueueingHint":       pb.ExtensionPoint_EXTENSION_POINT_QUEUEING_HINTS,
	"QueueingHints":      pb.ExtensionPoint_EXTENSION_POINT_QUEUEING_HINTS,
}

func (p *Plugin) filters() bool {
	return p.PreFilter != nil || p.Filter != nil || p.FilterNodes != nil
}

func (p *Plugin) scores() bool { return p.Score != nil || p.ScoreNodes != nil }

func (p *Plugin) hints() bool { return p.QueueingHint != nil || p.QueueingHints != nil }

// overlays says whether verdicts may change with the pods on a node: a function
// that sees one node at a time sees no pods.
func (p *Plugin) overlays() bool { return p.FilterNodes != nil && p.WantsPods }

// capabilities is the plugin's announcement, read off its fields.
func (p *Plugin) capabilities() *pb.Capabilities {
	announced := &pb.Capabilities{
		ExtensionPoints:    p.points(),
		State:              p.interest(),
		NodeLocal:          p.NodeLocal,
		ScoreNeedsFeasible: p.ScoreNeedsFeasible,
		Converse:           true,
		ConverseTogether:   true,
		ListedCandidates:   p.filters() || p.scores(),
		Clock:              p.Clock != nil,
	}
	for _, event := range p.Events {
		announced.Events = append(announced.Events, event.message(p.hints()))
	}
	if p.PodFields != nil {
		announced.PodFields = &pb.PodFields{Paths: p.PodFields}
	}
	if p.Arguments != nil {
		announced.ArgumentsSchema = p.Arguments.Schema()
	}
	if p.WantedDeadline > 0 {
		announced.WantedDeadline = durationpb.New(p.WantedDeadline)
	}
	for _, name := range slices.Sorted(maps.Keys(p.WantedDeadlines)) {
		wanted := &pb.WantedDeadline{ExtensionPoint: pointOf[name], Deadline: durationpb.New(p.WantedDeadlines[name])}
		announced.WantedDeadlines = append(announced.WantedDeadlines, wanted)
	}
	return announced
}

func (p *Plugin) interest() *pb.StateInterest {
	interest := &pb.StateInterest{
		Nodes:             true,
		Pods:              p.WantsPods,
		Nominations:       p.WantsNominations,
		PodResources:      p.PodResources,
		PodsWithoutStatus: p.PodsWithoutStatus,
	}
	for _, kind := range p.Resources {
		watched := &pb.WatchedResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource}
		if kind.LabelSelector != "" {
			watched.LabelSelector = &kind.LabelSelector
		}
		interest.Resources = append(interest.Resources, watched)
	}
	return interest
}
