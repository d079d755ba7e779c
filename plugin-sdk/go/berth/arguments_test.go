package berth_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/plugin-sdk/go/berth"
	"berth.dev/plugin-sdk/go/berthtest"
	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

type settings struct {
	Policy  string         `json:"policy" doc:"which nodes come first" enum:"packing,spreading"`
	Seconds int            `json:"seconds" minimum:"1" maximum:"60"`
	Share   float64        `json:"share"`
	Strict  bool           `json:"strict"`
	Teams   []string       `json:"teams"`
	Weights map[string]int `json:"weights"`
	Nested  struct {
		Name string `json:"name"`
	} `json:"nested"`
}

func configurable(taken *settings) *berth.Plugin {
	check := func(_ berth.Profile, given settings) error {
		if given.Share > 1 {
			problem := &berth.ArgumentError{Path: "share", Problem: "a share is at most 1"}
			return errors.Join(problem, errors.New("and something else"))
		}
		*taken = given
		return nil
	}
	defaults := settings{Policy: "packing", Seconds: 5}
	return &berth.Plugin{Name: "configurable", Arguments: berth.ArgumentsOf(defaults, check)}
}

func TestArgumentsAreTakenOverDefaults(t *testing.T) {
	var taken settings
	berthtest.RunWith(t, configurable(&taken), map[string]any{"seconds": 7, "teams": []string{"a"}})

	if taken.Policy != "packing" || taken.Seconds != 7 || !slices.Equal(taken.Teams, []string{"a"}) {
		t.Errorf("taken: %+v", taken)
	}
}

func TestEveryArgumentThatIsWrongIsNamed(t *testing.T) {
	for given, want := range map[string][]string{
		`{"policy": "best"}`:                   {`policy: "best" is none of packing, spreading`},
		`{"policy": 3, "teams": "a"}`:          {"policy: expected string, got 3", `teams: expected array, got "a"`},
		`{"seconds": 0}`:                       {"seconds: 0 is less than 1"},
		`{"seconds": 61}`:                      {"seconds: 61 is more than 60"},
		`{"seconds": 1.5}`:                     {"seconds: expected integer, got 1.5"},
		`{"strict": "yes"}`:                    {`strict: expected boolean, got "yes"`},
		`{"teams": ["a", 1]}`:                  {"teams[1]: expected string, got 1"},
		`{"weights": {"a": "b"}}`:              {`weights.a: expected integer, got "b"`},
		`{"nested": {"nam": "x"}, "polcy": 1}`: {"nested.nam: unknown argument", "polcy: unknown argument"},
		`{"share": 2}`:                         {"share: a share is at most 1", "arguments: and something else"},
		`[1]`:                                  {"arguments: expected an object: json: cannot unmarshal array into Go value of type map[string]interface {}"},
	} {
		t.Run(given, func(t *testing.T) {
			var taken settings
			host := berthtest.Connect(t, berthtest.Serve(t, configurable(&taken)))

			if problems := host.Configure(json.RawMessage(given)); !slices.Equal(want, problems) {
				t.Errorf("got %q, want %q", problems, want)
			}
		})
	}
}

func TestWithErrorsTheOldArgumentsStay(t *testing.T) {
	var taken settings
	host := berthtest.RunWith(t, configurable(&taken), map[string]any{"seconds": 7})

	host.Configure(map[string]any{"seconds": 0})
	host.Filter(bluePod)

	if taken.Seconds != 7 {
		t.Errorf("taken: %+v", taken)
	}
}

func TestArgumentsAreReplacedWhileServing(t *testing.T) {
	var taken settings
	host := berthtest.RunWith(t, configurable(&taken), map[string]any{"seconds": 7})

	host.Configure(map[string]any{"policy": "spreading"})

	if taken.Seconds != 5 || taken.Policy != "spreading" {
		t.Errorf("taken: %+v, want defaults where nothing is given", taken)
	}
}

func TestAPluginWithoutArgumentsRefusesThem(t *testing.T) {
	host := berthtest.Connect(t, berthtest.Serve(t, anyNode()))

	problems := host.Configure(map[string]any{"a": 1})

	if want := []string{"a: unknown argument of profile default-scheduler"}; !slices.Equal(want, problems) {
		t.Errorf("got %q", problems)
	}
}

func TestTheSchemaSaysWhatTheCheckDoes(t *testing.T) {
	var schema struct {
		AdditionalProperties bool
		Properties           map[string]map[string]any
	}

	must(t, json.Unmarshal(configurable(&settings{}).Arguments.Schema(), &schema))

	policy, seconds := schema.Properties["policy"], schema.Properties["seconds"]
	if policy["default"] != "packing" || policy["description"] != "which nodes come first" || policy["type"] != "string" {
		t.Errorf("policy: %v", policy)
	}
	if seconds["minimum"] != 1.0 || seconds["maximum"] != 60.0 || seconds["type"] != "integer" {
		t.Errorf("seconds: %v", seconds)
	}
	if len(schema.Properties) != 7 || schema.AdditionalProperties {
		t.Errorf("%d properties", len(schema.Properties))
	}
}

func TestAProfileThatWasRemovedIsUnknown(t *testing.T) {
	var removed string
	plugin := anyNode()
	plugin.ProfileRemoved = func(profile string) { removed = profile }
	r := passing(t, plugin)
	r.transferred()

	_, err := r.identity.Configure(r.ctx, &pb.ConfigureRequest{Profile: berthtest.Profile, Removed: true})
	must(t, err)

	if _, reason, _ := r.filter(head(1)); reason != "NOT_CONFIGURED" || removed != berthtest.Profile {
		t.Errorf("got %q, removed %q", reason, removed)
	}
}

func TestAnUnknownVersionOrHandshakeErrorsRefuseTheProfile(t *testing.T) {
	r := dial(t, anyNode())
	request := &pb.ConfigureRequest{ProtocolVersion: 2, Profile: "p", HandshakeErrors: []string{"no such kind"}}

	response, err := r.identity.Configure(r.ctx, request)
	must(t, err)

	if want := []string{"no such kind", "protocol_version: 2 is not spoken here, 1 is"}; !slices.Equal(want, response.Errors) {
		t.Errorf("got %q", response.Errors)
	}
}

func TestAPluginKnowsInWhoseShadowItIs(t *testing.T) {
	var known []bool
	check := func(profile berth.Profile, given settings) error {
		known = append(known, profile.Shadow)
		if given.Strict {
			return errors.New("not like this")
		}
		return nil
	}
	plugin := &berth.Plugin{
		Name:      "careful",
		Arguments: berth.ArgumentsOf(settings{Policy: "packing", Seconds: 5}, check),
		PreFilter: func(ctx context.Context, _ *corev1.Pod) *berth.Status {
			known = append(known, berth.CurrentCall(ctx).Profile.Shadow)
			return nil
		},
	}
	host := berthtest.RunWith(t, plugin, nil, berthtest.Node("n0"))

	host.Once = true

	host.ConfigureShadow(map[string]any{})
	host.Configure(map[string]any{"strict": true})
	host.Filter(berthtest.Pod("p"))

	if want := []bool{false, true, false, true}; !slices.Equal(known, want) {
		t.Errorf("known: %v, want %v", known, want)
	}
}

func TestArgumentsOfOneProfileLeaveTheDefaultsAsTheyAre(t *testing.T) {
	defaults := settings{Teams: []string{"a", "b"}, Weights: map[string]int{"a": 1}}
	defaults.Nested.Name = "n"
	arguments := berth.ArgumentsOf(defaults)

	problems := arguments.Take(berth.Profile{Name: "p"}, []byte(`{"teams": ["c"], "weights": {"b": 2}, "nested": {}}`))

	taken, kept := arguments.For("p"), arguments.For("other")
	if len(problems) > 0 || !slices.Equal(taken.Teams, []string{"c"}) || !maps.Equal(taken.Weights, map[string]int{"b": 2}) {
		t.Errorf("taken: %+v, %v", taken, problems)
	}
	if !slices.Equal(kept.Teams, []string{"a", "b"}) || !maps.Equal(kept.Weights, map[string]int{"a": 1}) || taken.Nested.Name != "n" {
		t.Errorf("the defaults are %+v now, nested %q", kept, taken.Nested.Name)
	}
}

func TestAPodWithoutASchedulersNameHasTheDefaultProfile(t *testing.T) {
	arguments := berth.ArgumentsOf(settings{Seconds: 5})
	arguments.Take(berth.Profile{Name: "default-scheduler"}, []byte(`{"seconds": 7}`))

	if got := arguments.Of(&corev1.Pod{}).Seconds; got != 7 {
		t.Errorf("got %d seconds", got)
	}
}
