package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"time"
)

const (
	byWatchList = true
	byList      = false
	unfinished  = "status.phase!=Succeeded,status.phase!=Failed"
)

// One object of each kind that kube-scheduler watches.
//
//go:embed watched.yaml
var watched string

// subject is an object to write, where, and the informer that shall see it.
type subject struct {
	sent     runtime.Object
	document *unstructured.Unstructured
	resource schema.GroupVersionResource
	client   dynamic.ResourceInterface
	informer cache.SharedIndexInformer
	seen     *witness
}

// followEveryKind creates, changes and deletes an object of each kind, one of them before the informers start.
func followEveryKind(watchList bool) func(context.Context, *server) error {
	return func(ctx context.Context, at *server) error {
		factory := schedulerInformers(at)
		subjects, err := everyKind(at, factory)
		if err != nil {
			return err
		}
		created := make([]*unstructured.Unstructured, len(subjects))
		for i, each := range subjects {
			if created[i], err = each.client.Create(ctx, each.document, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("%s: %w", each.resource.Resource, err)
			}
		}
		factory.StartWithContext(ctx)
		if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
			return err
		}
		for i, each := range subjects {
			if err := each.live(ctx, created[i]); err != nil {
				return fmt.Errorf("%s: %w", each.resource.Resource, err)
			}
			if err := at.filled(each, watchList); err != nil {
				return err
			}
		}
		return nil
	}
}

// schedulerInformers makes a factory whose pods are those that are not finished, without what is not read.
func schedulerInformers(at *server) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(at, 0)
	factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		pods := coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, byNamespace,
			func(options *metav1.ListOptions) { options.FieldSelector = unfinished })
		if err := pods.SetTransform(withoutManagedFields); err != nil {
			panic(err) // The informer has not started, so this can't be.
		}
		return pods
	})
	return factory
}

func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func everyKind(at *server, factory informers.SharedInformerFactory) ([]subject, error) {
	groups, err := restmapper.GetAPIGroupResources(at.Discovery())
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	var found []subject
	for _, text := range strings.Split(watched, "\n---\n") {
		each, err := newSubject(at, mapper, factory, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSpace(text), err)
		}
		found = append(found, each)
	}
	return found, nil
}

func newSubject(at *server, mapper meta.RESTMapper, factory informers.SharedInformerFactory, text string) (subject, error) {
	sent, kind, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		return subject{}, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return subject{}, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sent)
	if err != nil {
		return subject{}, err
	}
	delete(content, "status")
	document := &unstructured.Unstructured{Object: content}
	resources := at.dynamic.Resource(mapping.Resource)
	each := subject{sent: sent, document: document, resource: mapping.Resource, client: resources}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		document.SetNamespace(at.namespace)
		each.client = resources.Namespace(at.namespace)
	}
	generic, err := factory.ForResource(mapping.Resource)
	if err != nil {
		return subject{}, err
	}
	each.informer = generic.Informer()
	each.seen, err = follow(each.informer)
	return each, err
}

// live has the informer see the object that was there before, its change, and its end.
func (s subject) live(ctx context.Context, created *unstructured.Unstructured) error {
	key, err := cache.MetaNamespaceKeyFunc(created)
	if err != nil {
		return err
	}
	got, err := s.seen.await(ctx, "added", key, anything)
	if err != nil {
		return err
	}
	if err := s.same(created, got); err != nil {
		return err
	}
	patch := []byte(`{"metadata": {"labels": {"changed": "yes"}}}`)
	changed, err := s.client.Patch(ctx, created.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	isChanged := func(object any) bool { return object.(metav1.Object).GetLabels()["changed"] == "yes" }
	if got, err = s.seen.await(ctx, "updated", key, isChanged); err != nil {
		return err
	}
	if err := s.same(changed, got); err != nil {
		return err
	}
	if err := s.client.Delete(ctx, created.GetName(), metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err = s.seen.await(ctx, "deleted", key, anything)
	return err
}

// same says where what the informer holds is not what the writer was answered, or lacks what it sent.
func (s subject) same(answered *unstructured.Unstructured, got any) error {
	want := reflect.New(reflect.TypeOf(s.sent).Elem()).Interface().(runtime.Object)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answered.Object, want); err != nil {
		return err
	}
	have := got.(runtime.Object).DeepCopyObject()
	for _, each := range []runtime.Object{want, have} {
		each.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if _, err := withoutManagedFields(each); err != nil {
			return err
		}
	}
	if !equality.Semantic.DeepEqual(want, have) {
		return fmt.Errorf("answered\n%s\nwatched\n%s", plain(want), plain(have))
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return err
	}
	sent := s.document.DeepCopy().Object
	delete(sent, "kind")
	delete(sent, "apiVersion")
	delete(sent["metadata"].(map[string]any), "creationTimestamp")
	return within(sent, content, s.sent.GetObjectKind().GroupVersionKind().Kind)
}

// within says what was sent and is missing; what the server has added is no matter.
func within(sent, have any, path string) error {
	switch sent := sent.(type) {
	case map[string]any:
		found, _ := have.(map[string]any)
		for key, value := range sent {
			if err := within(value, found[key], path+"."+key); err != nil {
				return err
			}
		}
		return nil
	case []any:
		found, _ := have.([]any)
		if len(found) < len(sent) {
			return fmt.Errorf("%s: sent %v, watched %v", path, sent, have)
		}
		for i, value := range sent {
			if err := within(value, found[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	}
	if sent != nil && sent != have {
		return fmt.Errorf("%s: sent %v, watched %v", path, sent, have)
	}
	return nil
}

func plain(object runtime.Object) string {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// filled says whether the informer got its first objects the way it should.
func (s *server) filled(each subject, watchList bool) error {
	path := "/apis/" + each.resource.GroupVersion().String() + "/" + each.resource.Resource
	if each.resource.Group == "" {
		path = "/api/v1/" + each.resource.Resource
	}
	streamed := len(s.asked.matching("GET", path, "sendInitialEvents=true"))
	asked := len(s.asked.matching("GET", path, ""))
	watches := len(s.asked.matching("GET", path, "watch=true"))
	if watchList && (streamed != 1 || asked != watches) {
		return fmt.Errorf("%s: %d requests, %d watches, %d of them with first objects", path, asked, watches, streamed)
	}
	if !watchList && (streamed != 0 || asked-watches != 1) {
		return fmt.Errorf("%s: %d requests, %d watches, %d of them with first objects", path, asked, watches, streamed)
	}
	return nil
}
