package main

import (
	"context"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is the API server and this claim's own namespace in it.
type server struct {
	kubernetes.Interface
	config    *rest.Config
	dynamic   dynamic.Interface
	namespace string
	asked     *requests
}

// connect reaches the API server with kube-scheduler's client settings.
func connect(ctx context.Context, kubeconfig, contentType, namespace string) (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType = contentType
	config.QPS, config.Burst = 50, 100
	config.DisableCompression = true
	asked := &requests{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, asked} })
	typed, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "scheduler"))
	if err != nil {
		return nil, err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := typed.CoreV1().Namespaces().Create(ctx, own, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return &server{typed, config, untyped, namespace, asked}, nil
}

// request is one that was sent, and the status of its answer; 0 where there was none.
type request struct {
	method, path, query string
	status              int
}

type requests struct {
	lock sync.Mutex
	all  []request
}

// matching gives the requests of a method and path whose query contains a text.
func (r *requests) matching(method, path, query string) []request {
	r.lock.Lock()
	defer r.lock.Unlock()
	var found []request
	for _, each := range r.all {
		if each.method == method && each.path == path && strings.Contains(each.query, query) {
			found = append(found, each)
		}
	}
	return found
}

type recorder struct {
	next  http.RoundTripper
	asked *requests
}

func (r recorder) RoundTrip(asked *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(asked)
	seen := request{method: asked.Method, path: asked.URL.Path, query: asked.URL.RawQuery}
	if err == nil {
		seen.status = answer.StatusCode
	}
	r.asked.lock.Lock()
	defer r.asked.lock.Unlock()
	r.asked.all = append(r.asked.all, seen)
	return answer, err
}
