package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
)

var (
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// fields of a custom resource's definition and of its objects.
type fields = map[string]any

func widgetDefinition() *unstructured.Unstructured {
	milli := fields{"type": "object", "properties": fields{"milli": fields{"type": "integer"}}}
	schema := fields{"type": "object", "properties": fields{"spec": milli}}
	version := fields{"name": "v1", "served": true, "storage": true, "schema": fields{"openAPIV3Schema": schema}}
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   fields{"name": "widgets.example.com"},
		"spec": fields{
			"group":    widgets.Group,
			"scope":    "Namespaced",
			"names":    fields{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{version},
		},
	}}
}

func followCustomResources(ctx context.Context, at *server) error {
	_, err := at.dynamic.Resource(definitions).Create(ctx, widgetDefinition(), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(at.dynamic, 0)
	informer := factory.ForResource(widgets).Informer()
	seen, err := follow(informer)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if err := synced(ctx, informer); err != nil {
		return err
	}
	widget := &unstructured.Unstructured{Object: fields{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   fields{"name": "one"},
		"spec":       fields{"milli": int64(5)},
	}}
	if _, err := at.dynamic.Resource(widgets).Namespace(at.namespace).Create(ctx, widget, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = seen.await(ctx, "added", at.namespace+"/one", func(object any) bool {
		milli, found, err := unstructured.NestedInt64(object.(*unstructured.Unstructured).Object, "spec", "milli")
		return milli == 5 && found && err == nil
	})
	return err
}
