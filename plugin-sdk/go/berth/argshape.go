package berth

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

// shape is what may stand at one place of the arguments: the schema that is
// announced and the check that is made come from the same tags.
type shape struct {
	kind             string // as in JSON Schema
	doc              string
	enum             []string
	minimum, maximum *float64
	value            any // the default
	fields           map[string]*shape
	items            *shape
}

// shapeOf reads a shape off a Go value; it panics for what arguments can't hold.
func shapeOf(value reflect.Value) *shape {
	made := &shape{}
	switch value.Kind() {
	case reflect.Struct:
		made.kind, made.fields = "object", map[string]*shape{}
		for _, field := range reflect.VisibleFields(value.Type()) {
			if name := argumentName(field); name != "" {
				made.fields[name] = fieldShape(field, value.FieldByIndex(field.Index))
			}
		}
		return made
	case reflect.Map:
		made.kind, made.items = "object", shapeOf(reflect.Zero(value.Type().Elem()))
	case reflect.Slice, reflect.Array:
		made.kind, made.items = "array", shapeOf(reflect.Zero(value.Type().Elem()))
	case reflect.Pointer:
		made = shapeOf(reflect.Zero(value.Type().Elem()))
		made.value = nil
		return made
	case reflect.Bool:
		made.kind = "boolean"
	case reflect.String:
		made.kind = "string"
	case reflect.Float32, reflect.Float64:
		made.kind = "number"
	default:
		if !value.CanInt() && !value.CanUint() {
			panic(fmt.Sprintf("arguments can't hold a %v", value.Type()))
		}
		made.kind = "integer"
	}
	if !value.IsZero() || made.kind == "boolean" || made.kind == "integer" || made.kind == "number" {
		made.value = value.Interface()
	}
	return made
}

// argumentName is what a field is called in JSON, empty where it is no argument.
func argumentName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

func fieldShape(field reflect.StructField, value reflect.Value) *shape {
	made := shapeOf(value)
	made.doc = field.Tag.Get("doc")
	if values := field.Tag.Get("enum"); values != "" {
		made.enum = strings.Split(values, ",")
	}
	made.minimum, made.maximum = bound(field, "minimum"), bound(field, "maximum")
	return made
}

func bound(field reflect.StructField, tag string) *float64 {
	text, given := field.Tag.Lookup(tag)
	if !given {
		return nil
	}
	var number float64
	if err := json.Unmarshal([]byte(text), &number); err != nil {
		panic(fmt.Sprintf("%s of %s: %q is no number", tag, field.Name, text))
	}
	return &number
}

// document gives the shape as JSON Schema.
func (s *shape) document() map[string]any {
	made := map[string]any{"type": s.kind}
	set := func(name string, given bool, value any) {
		if given {
			made[name] = value
		}
	}
	set("description", s.doc != "", s.doc)
	set("enum", s.enum != nil, s.enum)
	set("default", s.value != nil, s.value)
	set("minimum", s.minimum != nil, s.minimum)
	set("maximum", s.maximum != nil, s.maximum)
	switch {
	case s.fields != nil:
		properties := map[string]any{}
		for name, field := range s.fields {
			properties[name] = field.document()
		}
		made["properties"], made["additionalProperties"] = properties, false
	case s.items != nil && s.kind == "object":
		made["additionalProperties"] = s.items.document()
	case s.items != nil:
		made["items"] = s.items.document()
	}
	return made
}

// check reports everything that is wrong with a decoded value, as "path: what is wrong".
func (s *shape) check(path string, value any) []string {
	switch given := value.(type) {
	case nil:
		return nil
	case map[string]any:
		return s.checkObject(path, given)
	case []any:
		return s.checkList(path, given)
	case bool:
		return s.expect(path, "boolean", value)
	case string:
		if s.kind == "string" && s.enum != nil && !slices.Contains(s.enum, given) {
			return []string{fmt.Sprintf("%s: %q is none of %s", path, given, strings.Join(s.enum, ", "))}
		}
		return s.expect(path, "string", value)
	case json.Number:
		return s.checkNumber(path, given)
	}
	return s.expect(path, "", value)
}

func (s *shape) expect(path, kind string, value any) []string {
	if s.kind == kind {
		return nil
	}
	data, _ := json.Marshal(value)
	return []string{fmt.Sprintf("%s: expected %s, got %s", orArguments(path), s.kind, data)}
}

func (s *shape) checkObject(path string, given map[string]any) []string {
	if s.kind != "object" {
		return s.expect(path, "object", given)
	}
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		inner := s.items
		if s.fields != nil {
			inner = s.fields[name]
		}
		if inner == nil {
			problems = append(problems, join(path, name)+": unknown argument")
			continue
		}
		problems = append(problems, inner.check(join(path, name), given[name])...)
	}
	return problems
}

func (s *shape) checkList(path string, given []any) []string {
	if s.kind != "array" {
		return s.expect(path, "array", given)
	}
	var problems []string
	for i, item := range given {
		problems = append(problems, s.items.check(fmt.Sprintf("%s[%d]", path, i), item)...)
	}
	return problems
}

func (s *shape) checkNumber(path string, given json.Number) []string {
	number, err := given.Float64()
	switch {
	case s.kind != "integer" && s.kind != "number", s.kind == "integer" && number != math.Trunc(number), err != nil:
		return s.expect(path, "", given)
	case s.minimum != nil && number < *s.minimum:
		return []string{fmt.Sprintf("%s: %s is less than %v", path, given, *s.minimum)}
	case s.maximum != nil && number > *s.maximum:
		return []string{fmt.Sprintf("%s: %s is more than %v", path, given, *s.maximum)}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func orArguments(path string) string {
	if path == "" {
		return "arguments"
	}
	return path
}
