package berth

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// session is what one plugin process knows: its mirror, its profiles, and the
// pods it was asked about. Every access to it takes a turn in its line.
type session struct {
	line     line
	plugin   *Plugin
	mirror   *mirror
	profiles map[string]Profile
	pods     *podMemory
	points   []int64 // of scoreEach
	// moved is closed, and made anew, whenever mirror or profiles change.
	moved chan struct{}
	// stream is the Sync stream that counts, the one opened last.
	stream *syncStream
	meter  *meter
	// onReady hears whether calls can be answered, when that changes.
	onReady func(ready bool)
	ready   bool
}

func newSession(plugin *Plugin, meter *meter) *session {
	return &session{
		plugin:   plugin,
		mirror:   newMirror(plugin),
		profiles: map[string]Profile{},
		pods:     newPodMemory(rememberedPods),
		points:   []int64{}, // nil would be no opinion
		moved:    make(chan struct{}),
		meter:    meter,
		onReady:  func(bool) {},
	}
}

// announce wakes the calls that wait, and reports readiness: configured and synced.
func (s *session) announce() {
	close(s.moved)
	s.moved = make(chan struct{})
	if ready := len(s.profiles) > 0 && s.mirror.generation > 0; ready != s.ready {
		s.ready = ready
		s.onReady(ready)
	}
	s.meter.state(s.mirror)
}

// catchUp holds the generation that the call is about, by its own deltas or by
// waiting for the stream.
func (s *session) catchUp(ctx context.Context, here *place, head *pb.Call) error {
	if _, known := s.profiles[head.Profile]; !known {
		return refused(notConfigured, "profile %q was not configured", head.Profile)
	}
	if err := s.checkEpoch(head); err != nil {
		return err
	}
	if err := s.follow(head); err != nil {
		return err
	}
	for head.Generation > s.mirror.generation {
		if err := here.pause(ctx, s.moved); err != nil {
			return fmt.Errorf("generation %d did not arrive: %w", head.Generation, err)
		}
		if err := s.checkEpoch(head); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) follow(head *pb.Call) error {
	before := s.mirror.generation
	defer func() {
		if s.mirror.generation != before {
			s.announce()
		}
	}()
	for _, delta := range head.Deltas {
		err := s.mirror.follow(delta, s.steps)
		if err == nil {
			continue
		}
		if err.reason == pb.NackReason_NACK_REASON_GAP {
			return nil // the stream brings what is missing
		}
		return refused(notSynced, "%v", err)
	}
	return nil
}

// steps decodes a delta, knowing the pods that calls have brought.
func (s *session) steps(changes []*pb.Change) ([]step, *syncError) {
	return stepsOf(changes, s.pods.decode)
}

func (s *session) checkEpoch(head *pb.Call) error {
	if s.mirror.generation == 0 || head.Epoch != s.mirror.epoch {
		return refused(notSynced, "epoch %q is held, not %q", s.mirror.epoch, head.Epoch)
	}
	return nil
}

// pod gives the pod that the call is about, as sent or as remembered from an
// earlier call of the attempt.
func (s *session) pod(ref *pb.PodRef) (*corev1.Pod, error) {
	if ref.Object == nil {
		if known := s.pods.get(ref.Uid, ref.Attempt); known != nil {
			return known, nil
		}
		return nil, refused(podUnknown, "pod %s/%s: its object is needed", ref.Namespace, ref.Name)
	}
	pod, err := s.pods.put(ref)
	if err != nil {
		return nil, invalid("pod %s/%s: %v", ref.Namespace, ref.Name, err)
	}
	return pod, nil
}

// candidates gives the nodes that are asked about, at the call's indices.
func (s *session) candidates(head *pb.Call, message *pb.Candidates) (*candidates, error) {
	if err := s.checkEpoch(head); err != nil {
		return nil, err
	}
	if head.Generation < s.mirror.layoutSince {
		return nil, refused(generationGone, "node indices of generation %d ended at %d",
			head.Generation, s.mirror.layoutSince)
	}
	asked, err := candidatesOf(s.mirror, message)
	if err != nil {
		return nil, invalid("candidates: %v", err)
	}
	return asked, nil
}

// node gives a node by name, nil if it is gone.
func (s *session) node(name string) *corev1.Node {
	if index, known := s.mirror.index[name]; known {
		return s.mirror.nodes[index]
	}
	return nil
}
