package main

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/informers"
)

func discover(_ context.Context, at *server) error {
	reported, err := at.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	is, err := version.ParseSemantic(reported.GitVersion)
	if err != nil {
		return err
	}
	if is.LessThan(version.MustParseSemantic("1.36.0")) || reported.Major != "1" {
		return fmt.Errorf("version %+v", reported)
	}
	_, lists, err := at.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	verbs := map[string][]string{}
	for _, list := range lists {
		for _, each := range list.APIResources {
			verbs[list.GroupVersion+"/"+each.Name] = each.Verbs
		}
	}
	subjects, err := everyKind(at, informers.NewSharedInformerFactory(at, 0))
	if err != nil {
		return err
	}
	for _, each := range subjects {
		found := verbs[each.resource.GroupVersion().String()+"/"+each.resource.Resource]
		if !slices.Contains(found, "list") || !slices.Contains(found, "watch") {
			return fmt.Errorf("%s can %v", each.resource, found)
		}
	}
	for _, each := range []string{"pods/binding", "pods/status", "pods/eviction", "persistentvolumes/status"} {
		if verbs["v1/"+each] == nil {
			return fmt.Errorf("%s is not served", each)
		}
	}
	return nil
}
