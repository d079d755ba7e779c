package berth_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// numbered is a node's number, by which the plugins here answer.
func numbered(node *corev1.Node) int {
	number, _ := strconv.Atoi(node.Name[1:])
	return number
}

func byNode() *berth.Plugin {
	return &berth.Plugin{
		Name: "by-node",
		Filter: func(_ *corev1.Pod, node *corev1.Node) *berth.Reason {
			return []*berth.Reason{nil, wrongTeam, nil, noTeam}[numbered(node)%4]
		},
		Score:         func(_ *corev1.Pod, node *corev1.Node) int64 { return int64(numbered(node)) * 1000 },
		Normalization: berth.NormalizationMinMax,
	}
}

// atOnce answers as byNode does, for all nodes that are asked about.
func atOnce() *berth.Plugin {
	one := byNode()
	return &berth.Plugin{
		Name: "at-once",
		FilterNodes: func(pod *corev1.Pod, nodes *berth.Nodes) berth.Verdicts {
			return nodes.Verdicts(func(_ int, node *corev1.Node) *berth.Reason { return one.Filter(pod, node) })
		},
		ScoreNodes: func(pod *corev1.Pod, nodes *berth.Nodes) []int64 {
			return nodes.Scores(func(index int, _ *corev1.Node) int64 { return one.Score(pod, nodes.At(index)) })
		},
		Normalization: berth.NormalizationMinMax,
	}
}

func nodesOf(count int) (nodes []*corev1.Node) {
	for i := range count {
		nodes = append(nodes, berthtest.Node(fmt.Sprintf("n%d", i)))
	}
	return nodes
}

// chosen are some of the nodes by chance, from none to all.
func chosen(host *berthtest.Host, chance *rand.Rand) []string {
	names := host.Cluster.Names()
	chance.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:chance.IntN(len(names)+1)]
}

func TestAListIsAnsweredAsTheBitmapOfTheSameNodes(t *testing.T) {
	skipping := byNode()
	skipping.PreFilter = preFilter(berth.NewStatus(berth.Skip))
	filtering, scoring := byNode(), byNode()
	filtering.Score, scoring.Filter = nil, nil
	for name, plugin := range map[string]*berth.Plugin{
		"node by node": byNode(), "all at once": atOnce(), "skipped": skipping,
		"filter only": filtering, "score only": scoring,
	} {
		t.Run(name, func(t *testing.T) {
			host := berthtest.Run(t, plugin, nodesOf(21)...)
			chance := rand.New(rand.NewPCG(1, 2))
			for range 40 {
				names := chosen(host, chance)
				answers := func(listed bool) []any {
					host.Listed = listed
					verdict, scores := host.FilterScore(bluePod, names...)
					return []any{host.Filter(bluePod, names...), host.Score(bluePod, names...), verdict, scores}
				}

				want, got := answers(false), answers(true)

				if !reflect.DeepEqual(want, got) {
					t.Fatalf("of %v: got %v, want %v", names, got, want)
				}
			}
		})
	}
}

func TestOnlyListedNodesAreLookedAt(t *testing.T) {
	var filtered, scored []string
	plugin := byNode()
	filter, score := plugin.Filter, plugin.Score
	plugin.Filter = func(pod *corev1.Pod, node *corev1.Node) *berth.Reason {
		filtered = append(filtered, node.Name)
		return filter(pod, node)
	}
	plugin.Score = func(pod *corev1.Pod, node *corev1.Node) int64 {
		scored = append(scored, node.Name)
		return score(pod, node)
	}
	host := berthtest.Run(t, plugin, nodesOf(9)...)
	host.Listed, host.Once = true, true

	_, scores := host.FilterScore(bluePod, "n2", "n5", "n8")

	if want := []string{"n2", "n5", "n8"}; !slices.Equal(want, filtered) {
		t.Errorf("filter saw %v, want %v", filtered, want)
	}
	if want := []string{"n2", "n8"}; !slices.Equal(want, scored) {
		t.Errorf("score saw %v, want %v", scored, want)
	}
	if want := map[string]int64{"n2": 2000, "n8": 8000}; !maps.Equal(want, scores) {
		t.Errorf("scores %v, want %v", scores, want)
	}
}

func TestVectorsOfAnAnswerAreAsLongAsTheList(t *testing.T) {
	for name, plugin := range map[string]*berth.Plugin{"node by node": byNode(), "all at once": atOnce()} {
		t.Run(name, func(t *testing.T) {
			r := passing(t, plugin)
			opened, _ := r.sync()
			opened.hear(begin("e"), chunk(nodeAt(0, "n0"), nodeAt(1, "n1"), nodeAt(2, "n2")), commit(1, 3))

			response, err := r.scheduling.FilterScore(r.ctx, &pb.FilterScoreRequest{
				Call: head(1), Candidates: &pb.Candidates{Indices: indices(1, 2)},
			})
			must(t, err)

			codes, points := response.Filter.Verdicts.GetEach(), response.Score.Scores.GetInt32()
			if want := []byte{1, 0}; !slices.Equal(want, codes) {
				t.Errorf("codes %v, want %v", codes, want)
			}
			if want := []byte{0, 0, 0, 0, 0xd0, 7, 0, 0}; !slices.Equal(want, points) {
				t.Errorf("points %v, want %v", points, want)
			}
		})
	}
}

func TestAnEmptyListAsksAboutNoNode(t *testing.T) {
	host := berthtest.Run(t, byNode(), nodesOf(3)...)
	host.Listed = true

	scores := host.Score(bluePod, []string{}...)
	verdict, _ := host.FilterScore(bluePod, []string{}...)

	if scores == nil || len(scores) > 0 || len(verdict.Rejected) > 0 || verdict.Status.Code != berth.Success {
		t.Errorf("scores %v, verdict %v", scores, verdict)
	}
}

func TestListsThatAreNoneAreTheHostsFault(t *testing.T) {
	for name, listed := range map[string][]byte{
		"half an index":           {0, 0, 0, 0, 1, 0},
		"the same twice":          indices(0, 0),
		"descending":              indices(1, 0),
		"past the last node":      indices(1, 2),
		"as many as numbers hold": indices(1<<32 - 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := passing(t, byNode())
			r.transferred()

			_, err := r.scheduling.FilterScore(r.ctx, &pb.FilterScoreRequest{
				Call: head(1), Candidates: &pb.Candidates{Indices: listed},
			})

			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("got %v, want INVALID_ARGUMENT", err)
			}
		})
	}
}

func TestPluginsThatLookForANodeReadLists(t *testing.T) {
	sorting := &berth.Plugin{Name: "sorting", SortKey: func(*corev1.Pod) []int64 { return nil }}
	for plugin, want := range map[*berth.Plugin]bool{byNode(): true, atOnce(): true, sorting: false} {
		t.Run(plugin.Name, func(t *testing.T) {
			r := dial(t, plugin)

			response, err := r.identity.Handshake(r.ctx, &pb.HandshakeRequest{SupportedVersions: []uint32{1}})
			must(t, err)

			if got := response.Capabilities.ListedCandidates; got != want {
				t.Errorf("announced %v, want %v", got, want)
			}
		})
	}
}

func indices(listed ...uint32) (packed []byte) {
	for _, index := range listed {
		packed = binary.LittleEndian.AppendUint32(packed, index)
	}
	return packed
}
