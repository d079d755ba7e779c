package berth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// Arguments is what profiles may configure; [ArgumentsOf] makes it from a struct.
type Arguments interface {
	// Schema is a JSON Schema (draft 2020-12) of the arguments.
	Schema() []byte
	// Take takes over a profile's arguments. Every error reads "path: what is wrong".
	Take(profile Profile, arguments []byte) []string
	// Drop forgets a profile.
	Drop(profile string)
}

// ArgumentError is one thing that is wrong with an argument; join several with
// errors.Join.
type ArgumentError struct{ Path, Problem string }

// Error gives "path: what is wrong".
func (e *ArgumentError) Error() string { return e.Path + ": " + e.Problem }

// ArgumentsOf makes Arguments of a struct. Its fields' `json` tags name them, its
// values are the defaults, and three more tags say what may stand there:
//
//	Policy  string `json:"policy"  doc:"which nodes come first" enum:"packing,spreading"`
//	Seconds int    `json:"seconds" doc:"how long to wait" minimum:"1" maximum:"3600"`
//
// Unknown arguments, wrong types and values out of bounds are refused, all of
// them at once. Further checks see only arguments that passed, before these
// count; they may also take them over to where the plugin wants them.
func ArgumentsOf[T any](defaults T, checks ...func(profile Profile, arguments T) error) *ProfileArguments[T] {
	shape := shapeOf(reflect.ValueOf(defaults))
	return &ProfileArguments[T]{defaults: defaults, shape: shape, checks: checks, taken: map[string]T{}}
}

// ProfileArguments holds the arguments of each profile.
type ProfileArguments[T any] struct {
	defaults T
	shape    *shape
	checks   []func(Profile, T) error
	mutex    sync.RWMutex
	taken    map[string]T
}

// For gives a profile's arguments, the defaults if it has none.
func (a *ProfileArguments[T]) For(profile string) T {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	if taken, configured := a.taken[profile]; configured {
		return taken
	}
	return a.defaults
}

// Of gives the arguments of the pod's profile: its scheduler's name.
func (a *ProfileArguments[T]) Of(pod *corev1.Pod) T {
	return a.For(cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName))
}

// Schema is the arguments' JSON Schema.
func (a *ProfileArguments[T]) Schema() []byte {
	document := a.shape.document()
	document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	data, err := json.Marshal(document)
	if err != nil {
		panic(fmt.Sprintf("arguments: %v", err)) // the defaults are no JSON
	}
	return data
}

// Take takes over a profile's arguments, or says all that is wrong with them.
func (a *ProfileArguments[T]) Take(profile Profile, data []byte) []string {
	document, problems := parseArguments(data)
	if len(problems) > 0 {
		return problems
	}
	if problems = a.shape.check("", document); len(problems) > 0 {
		return problems
	}
	taken := a.defaults
	if len(data) > 0 {
		renew(reflect.ValueOf(&taken).Elem(), document)
		if err := json.Unmarshal(data, &taken); err != nil {
			return []string{"arguments: " + err.Error()}
		}
	}
	for _, check := range a.checks {
		problems = append(problems, problemsOf(check(profile, taken))...)
	}
	if len(problems) == 0 {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.taken[profile.Name] = taken
	}
	return problems
}

// renew empties the maps, slices and pointers that are given: decoding would
// write into those of the defaults.
func renew(value reflect.Value, given any) {
	switch value.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer:
		value.SetZero()
	case reflect.Struct:
		document, _ := given.(map[string]any)
		for _, field := range reflect.VisibleFields(value.Type()) {
			if inner, there := document[argumentName(field)]; there {
				renew(value.FieldByIndex(field.Index), inner)
			}
		}
	}
}

// Drop forgets a profile.
func (a *ProfileArguments[T]) Drop(profile string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.taken, profile)
}

// noArguments is what a plugin without Arguments has.
type noArguments struct{}

func (noArguments) Schema() []byte { return nil }

func (noArguments) Drop(string) {}

func (noArguments) Take(profile Profile, data []byte) []string {
	document, problems := parseArguments(data)
	for _, name := range slices.Sorted(maps.Keys(document)) {
		problems = append(problems, fmt.Sprintf("%s: unknown argument of profile %s", name, profile.Name))
	}
	return problems
}

func parseArguments(data []byte) (map[string]any, []string) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	var document map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil {
		return nil, []string{fmt.Sprintf("arguments: expected an object: %v", err)}
	}
	return document, nil
}

func problemsOf(err error) []string {
	if err == nil {
		return nil
	}
	var problems []string
	if joined, several := err.(interface{ Unwrap() []error }); several {
		for _, each := range joined.Unwrap() {
			problems = append(problems, problemsOf(each)...)
		}
		return problems
	}
	var known *ArgumentError
	if errors.As(err, &known) {
		return []string{known.Error()}
	}
	return []string{"arguments: " + strings.TrimSpace(err.Error())}
}
