package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/plugin-sdk/go/berthtest"
)

// observed are pods in these phases; those that run or ended have a node.
func observed(phases ...corev1.PodPhase) map[string]podState {
	pods := map[string]podState{}
	for i, phase := range phases {
		name := fmt.Sprintf("p-%d", i)
		pods[name] = podState{name: name, phase: phase, placed: phase != corev1.PodPending}
	}
	return pods
}

func TestPhases(t *testing.T) {
	const pending, running, succeeded, failed = corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed
	for _, test := range []struct {
		name string
		last string
		pods map[string]podState
		want string
	}{
		{"no pods", "", observed(), phasePending},
		{"too few pods", "", observed(running), phasePending},
		{"enough pods", phasePending, observed(pending, pending), phaseScheduling},
		{"some run", phaseScheduling, observed(running, pending), phaseScheduling},
		{"enough run", phaseScheduling, observed(running, running), phaseRunning},
		{"one has succeeded", phaseRunning, observed(running, succeeded), phaseRunning},
		{"enough have succeeded", phaseRunning, observed(succeeded, succeeded, failed), phaseFinished},
		{"one has failed", phaseRunning, observed(running, failed), phaseFailed},
		{"one has failed, others are pending", phaseScheduling, observed(failed, pending), phaseScheduling},
		{"pods are gone", phaseRunning, observed(running), phasePending},
		{"finished is final", phaseFinished, observed(), phaseFinished},
		{"failed is final", phaseFailed, observed(running, running), phaseFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := statusAfter(PodGroupStatus{Phase: test.last}, 2, test.pods, time.Unix(1000, 0))

			if next.Phase != test.want {
				t.Errorf("%+v, want %s", next, test.want)
			}
		})
	}
}

func TestCountsAndOwners(t *testing.T) {
	pods := observed(corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending)
	first := pods["p-0"]
	first.owners = []string{"default/set", "default/job"}
	pods["p-0"] = first
	began := metav1.NewTime(time.Unix(1000, 0))

	next := statusAfter(PodGroupStatus{}, 4, pods, time.Unix(1000, 500))

	want := PodGroupStatus{
		Phase: phaseScheduling, OccupiedBy: "default/job,default/set", Scheduled: 3, Running: 1, Succeeded: 1,
		Failed: 1, ScheduleStartTime: &began,
	}
	if !next.equal(want) {
		t.Errorf("%+v, want %+v", next, want)
	}
	if later := statusAfter(next, 4, pods, time.Unix(2000, 0)); !later.equal(next) {
		t.Errorf("%+v is another status of the same pods", later)
	}
}

// server answers writes with these codes, the last one from then on, and hands on
// what was written.
func server(t *testing.T, codes ...int) (*statusWriter, <-chan string) {
	heard := make(chan string, 100)
	answer := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		code := codes[0]
		if len(codes) > 1 {
			codes = codes[1:]
		}
		response.WriteHeader(code)
		_, _ = io.WriteString(response, `{"message": "no"}`)
		heard <- request.Method + " " + request.URL.Path + " " + string(body)
	}))
	t.Cleanup(answer.Close)
	return newWriter(answer.URL, "", http.DefaultTransport), heard
}

func hears(t *testing.T, heard <-chan string) string {
	t.Helper()
	select {
	case said := <-heard:
		return said
	case <-time.After(time.Minute):
		t.Fatal("nothing was written")
		return ""
	}
}

func TestAStatusIsPatched(t *testing.T) {
	writer, heard := server(t, 200)

	writer.put(groupKey{"default", "a"}, PodGroupStatus{Phase: phaseRunning, Running: 2})

	method, body, _ := strings.Cut(hears(t, heard), " {")
	if method != "PATCH /apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/a/status" {
		t.Errorf("asked %s", method)
	}
	var patch map[string]map[string]any
	if err := json.Unmarshal([]byte("{"+body), &patch); err != nil {
		t.Fatal(err)
	}
	status := patch["status"]
	if failed, named := status["failed"]; status["phase"] != "Running" || status["running"] != 2.0 || !named || failed != nil {
		t.Errorf("patched %v", patch)
	}
}

func TestAWriteThatFailsIsRepeated(t *testing.T) {
	for _, test := range []struct {
		code   int
		writes int
	}{{500, 2}, {403, 2}, {404, 1}, {422, 1}} {
		t.Run(http.StatusText(test.code), func(t *testing.T) {
			writer, heard := server(t, test.code, 200)

			writer.put(groupKey{"default", "a"}, PodGroupStatus{Phase: phasePending})

			for range test.writes {
				hears(t, heard)
			}
			writer.put(groupKey{"default", "last"}, PodGroupStatus{})
			if said := hears(t, heard); !strings.Contains(said, "/last/") {
				t.Errorf("one more write: %s", said)
			}
		})
	}
}

// written is a kit whose plugin writes statuses.
func written(t *testing.T) (*kit, <-chan string) {
	writer, heard := server(t, 200)
	k := &kit{t: t, plugin: newCoscheduling(writer), clock: time.Unix(1000, 0)}
	k.Host = berthtest.RunWith(t, k.plugin.plugin, nil, berthtest.Node("n"))
	k.SetTime(k.clock)
	return k, heard
}

func TestAGroupsStatusIsWritten(t *testing.T) {
	k, heard := written(t)
	k.group("a", 2, 0)
	pods := k.pods("a", 2)
	k.passes(reportDelay)
	if said := hears(t, heard); !strings.Contains(said, `"phase":"Scheduling"`) {
		t.Errorf("wrote %s", said)
	}

	for _, pod := range pods {
		pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning
		k.Cluster.PutObject(podObject(pod), pod)
	}
	k.Update()
	k.passes(reportDelay)

	if said := hears(t, heard); !strings.Contains(said, `"phase":"Running"`) || !strings.Contains(said, `"scheduled":2`) {
		t.Errorf("wrote %s", said)
	}
}

func TestPodsThatHaveEndedCountUntilTheyAreDeleted(t *testing.T) {
	k, heard := written(t)
	k.group("a", 3, 0)
	pods := k.pods("a", 2)
	pods[0].Status.Phase = corev1.PodSucceeded
	k.Cluster.PutObject(podObject(pods[0]), pods[0])
	k.Update()
	k.passes(reportDelay)
	if said := hears(t, heard); !strings.Contains(said, `"succeeded":1`) {
		t.Errorf("wrote %s", said)
	}

	k.Cluster.RemoveObject(podObject(pods[0]))
	k.Update()
	k.passes(reportDelay)

	if said := hears(t, heard); !strings.Contains(said, `"succeeded":null`) {
		t.Errorf("wrote %s", said)
	}
}
