package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/plugin-sdk/go/berth"
)

const (
	// minMembers is the annotation of a PodGroup with the least pods of each role,
	// such as "ps=1,worker=3".
	minMembers = "coscheduling.berth.dev/min-members"
	// roleLabel is the label of a pod that names its role in the group.
	roleLabel = "coscheduling.berth.dev/role"
	mostRoles = 64
)

// demand is what a group has to have before any of its pods is bound: so many pods,
// so many of each role, and so much requested by all of them together. Amounts are
// milli-cores of cpu and units of anything else.
type demand struct {
	pods     int
	roles    map[string]int
	requests map[corev1.ResourceName]int64
}

// demandOf reads what a PodGroup asks for.
//
// Errors: the field or the annotation that asks for the impossible.
func demandOf(group *PodGroup) (demand, error) {
	read := demand{pods: int(group.Spec.MinMember), requests: map[corev1.ResourceName]int64{}}
	if read.pods < 0 {
		return demand{}, fmt.Errorf("spec.minMember: %d is negative", read.pods)
	}
	for name, quantity := range group.Spec.MinResources {
		if quantity.Sign() < 0 {
			return demand{}, fmt.Errorf("spec.minResources.%s: %s is negative", name, quantity.String())
		}
		read.requests[name] = amountOf(name, quantity)
	}
	var err error
	if read.roles, err = rolesOf(group.Metadata.Annotations[minMembers]); err != nil {
		return demand{}, fmt.Errorf("metadata.annotations[%s]: %w", minMembers, err)
	}
	return read, nil
}

func rolesOf(text string) (map[string]int, error) {
	roles := map[string]int{}
	if text == "" {
		return roles, nil
	}
	parts := strings.SplitN(text, ",", mostRoles+1)
	if len(parts) > mostRoles {
		return nil, fmt.Errorf("more than %d roles", mostRoles)
	}
	for _, part := range parts {
		name, number, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		count, err := strconv.ParseInt(strings.TrimSpace(number), 10, 32)
		if name == "" || len(validation.IsValidLabelValue(name)) > 0 || err != nil || count < 1 {
			return nil, fmt.Errorf("%.80q is no role=number, the number 1 or more", part)
		}
		if _, again := roles[name]; again {
			return nil, fmt.Errorf("role %s is named twice", name)
		}
		roles[name] = int(count)
	}
	return roles, nil
}

func amountOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// shown is an amount as users write it.
func shown(name corev1.ResourceName, amount int64) string {
	if name == corev1.ResourceCPU {
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	}
	return strconv.FormatInt(amount, 10)
}

// tally is what some pods of a group come to.
type tally struct {
	pods     int
	roles    map[string]int
	requests map[corev1.ResourceName]int64
}

func newTally() *tally {
	return &tally{roles: map[string]int{}, requests: map[corev1.ResourceName]int64{}}
}

func (t *tally) add(each *member) {
	t.pods++
	t.roles[each.role]++
	for name, amount := range each.requests {
		t.requests[name] += amount
	}
}

// missing says what the pods lack of the demand; empty where it is met.
func (d *demand) missing(have *tally) string {
	if have.pods < d.pods {
		return fmt.Sprintf("has %d of the %d pods it needs", have.pods, d.pods)
	}
	for _, role := range slices.Sorted(maps.Keys(d.roles)) {
		if count := have.roles[role]; count < d.roles[role] {
			return fmt.Sprintf("has %d of the %d pods of role %s it needs", count, d.roles[role], role)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.requests)) {
		if amount := have.requests[name]; amount < d.requests[name] {
			return fmt.Sprintf("requests %s of the %s of %s it needs", shown(name, amount), shown(name, d.requests[name]), name)
		}
	}
	return ""
}

// crowds says which role a pod of another one would take a place from, as long as
// that role lacks pods with one: beyond its roles' pods a group holds only as many
// places as it needs. Empty where the pod may be tried.
func (d *demand) crowds(role string, have *tally) string {
	if have.roles[role] < d.roles[role] {
		return ""
	}
	lacking, ofRoles, within := "", 0, 0
	for each, least := range d.roles {
		ofRoles += least
		within += min(have.roles[each], least)
		if have.roles[each] < least && (lacking == "" || each < lacking) {
			lacking = each
		}
	}
	if have.pods-within < d.pods-ofRoles {
		return ""
	}
	return lacking
}

// requestsOf is what the pod requests, by all resources that it names.
func requestsOf(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	lists := []corev1.ResourceList{pod.Spec.Overhead}
	if pod.Spec.Resources != nil {
		lists = append(lists, pod.Spec.Resources.Requests)
	}
	for _, each := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		lists = append(lists, each.Resources.Requests)
	}
	requests := map[corev1.ResourceName]int64{}
	for _, list := range lists {
		for name := range list {
			requests[name] = berth.Request(pod, name)
		}
	}
	return requests
}
