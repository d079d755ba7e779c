package berth

import (
	"bytes"
	"container/list"

	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

const rememberedPods = 10_000

// podMemory keeps the pods last asked about, so that an object that comes again
// is not decoded again, and one that is left out is at hand.
type podMemory struct {
	limit  int
	byUID  map[string]*list.Element
	recent *list.List // of *rememberedPod, the latest in front
}

type rememberedPod struct {
	uid     string
	attempt uint32
	data    []byte
	pod     *corev1.Pod
}

func newPodMemory(limit int) *podMemory {
	return &podMemory{limit: limit, byUID: map[string]*list.Element{}, recent: list.New()}
}

// put remembers what was sent for an attempt.
func (m *podMemory) put(ref *pb.PodRef) (*corev1.Pod, error) {
	pod, err := m.decode(ref.Uid, ref.Object)
	if err != nil {
		return nil, err
	}
	entry := &rememberedPod{ref.Uid, ref.Attempt, ref.Object, pod}
	if at, known := m.byUID[ref.Uid]; known {
		at.Value = entry
		m.recent.MoveToFront(at)
		return pod, nil
	}
	m.byUID[ref.Uid] = m.recent.PushFront(entry)
	if m.recent.Len() > m.limit {
		m.forget(m.recent.Back().Value.(*rememberedPod).uid)
	}
	return pod, nil
}

// get gives the pod of an attempt, nil if it is not at hand.
func (m *podMemory) get(uid string, attempt uint32) *corev1.Pod {
	if entry := m.entry(uid); entry != nil && entry.attempt == attempt {
		return entry.pod
	}
	return nil
}

// latest gives the pod as last seen, whichever the attempt; nil if it is not at hand.
func (m *podMemory) latest(uid string) *corev1.Pod {
	if entry := m.entry(uid); entry != nil {
		return entry.pod
	}
	return nil
}

func (m *podMemory) forget(uid string) {
	if at, known := m.byUID[uid]; known {
		m.recent.Remove(at)
		delete(m.byUID, uid)
	}
}

// decode gives the pod, without work where the same bytes are remembered.
func (m *podMemory) decode(uid string, data []byte) (*corev1.Pod, error) {
	if entry := m.entry(uid); entry != nil && bytes.Equal(entry.data, data) {
		return entry.pod, nil
	}
	return decodePod(uid, data)
}

func (m *podMemory) entry(uid string) *rememberedPod {
	if at, known := m.byUID[uid]; known {
		return at.Value.(*rememberedPod)
	}
	return nil
}
