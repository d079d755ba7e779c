package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"berth.dev/plugin-sdk/go/berth"
)

const (
	// serverVariable is the URL of the API server outside of a cluster, such as the
	// one of `kubectl proxy`.
	serverVariable = "BERTH_COSCHEDULING_API_SERVER"
	serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
	writeTimeout   = 10 * time.Second
	firstPause     = time.Second
	longestPause   = 30 * time.Second
)

// statusWriter writes the statuses of PodGroups to the API server, one at a time,
// the newest of each group. A write that fails for a reason that may go away is
// tried again.
type statusWriter struct {
	server, token string
	client        *http.Client

	mutex   sync.Mutex
	pending map[groupKey]PodGroupStatus
	wake    chan struct{}
	written map[string]int // by outcome
	// said is the failure in the log, until a write succeeds.
	said string
}

// writerFromEnvironment is the writer to the API server of this cluster, or the one
// that the environment names; nil where there is neither.
func writerFromEnvironment() *statusWriter {
	if server := os.Getenv(serverVariable); server != "" {
		return newWriter(strings.TrimRight(server, "/"), "", http.DefaultTransport)
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	// Where containers have no mount namespace, this variable says what mount paths stand behind.
	folder := strings.TrimRight(os.Getenv("CONTAINER_SANDBOX_MOUNT_POINT"), "/") + serviceAccount
	authority, err := os.ReadFile(folder + "/ca.crt")
	if host == "" || port == "" || err != nil {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return newWriter("https://"+net.JoinHostPort(host, port), folder+"/token", transport)
}

func newWriter(server, token string, transport http.RoundTripper) *statusWriter {
	w := &statusWriter{
		server: server, token: token,
		client:  &http.Client{Transport: transport, Timeout: writeTimeout},
		pending: map[groupKey]PodGroupStatus{},
		wake:    make(chan struct{}, 1),
		written: map[string]int{},
	}
	go w.run()
	return w
}

// put has a group's status written, in place of one that waits.
func (w *statusWriter) put(key groupKey, status PodGroupStatus) {
	w.mutex.Lock()
	w.pending[key] = status
	w.mutex.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // it is awake already
	}
}

// forget drops what waits to be written of a group that is gone.
func (w *statusWriter) forget(key groupKey) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.pending, key)
}

func (w *statusWriter) take() (key groupKey, status PodGroupStatus, some bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for key, status = range w.pending {
		delete(w.pending, key)
		return key, status, true
	}
	return key, status, false
}

func (w *statusWriter) run() {
	pause := firstPause
	for {
		key, status, some := w.take()
		if !some {
			<-w.wake
			continue
		}
		again, err := w.write(key, status)
		w.note(key, err)
		if !again {
			pause = firstPause
			continue
		}
		w.putBack(key, status)
		time.Sleep(pause)
		pause = min(2*pause, longestPause)
	}
}

// putBack has a status written later, unless a newer one waits.
func (w *statusWriter) putBack(key groupKey, status PodGroupStatus) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if _, newer := w.pending[key]; !newer {
		w.pending[key] = status
	}
}

// note counts a write, and logs a failure once until a write succeeds or fails otherwise.
func (w *statusWriter) note(key groupKey, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err == nil {
		w.written["written"]++
		w.said = ""
		return
	}
	w.written["failed"]++
	if text := err.Error(); text != w.said {
		w.said = text
		slog.Error("status of a pod group not written", "group", key.String(), "error", text)
	}
}

// write patches a status; whether it is worth another try, and what went wrong.
func (w *statusWriter) write(key groupKey, status PodGroupStatus) (again bool, err error) {
	body, err := json.Marshal(status.patch())
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, w.server+key.statusPath(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	if w.token != "" {
		token, err := os.ReadFile(w.token) // anew: the kubelet renews it
		if err != nil {
			return true, err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := w.client.Do(request)
	if err != nil {
		return true, err
	}
	defer response.Body.Close()
	return outcome(response)
}

// outcome reads an answer: 404 is the answer about a group that is gone.
func outcome(response *http.Response) (again bool, err error) {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 4<<20)) // the connection is used again
	switch code := response.StatusCode; {
	case code < 300 || code == http.StatusNotFound:
		return false, nil
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity:
		return false, refusedWrite(response, text)
	default:
		return true, refusedWrite(response, text)
	}
}

func refusedWrite(response *http.Response, text []byte) error {
	var status struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(text, &status)
	return errors.New(cmp.Or(status.Message, fmt.Sprintf("the API server answers %s", response.Status)))
}

// metrics are the writes so far.
func (w *statusWriter) metrics() []berth.Metric {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	writes := berth.Metric{
		Name: "coscheduling_status_writes_total", Kind: "counter", Help: "Writes of a PodGroup's status, by outcome.",
	}
	for _, each := range []string{"written", "failed"} {
		labels := map[string]string{"outcome": each}
		writes.Values = append(writes.Values, berth.Labelled{Labels: labels, Value: float64(w.written[each])})
	}
	return []berth.Metric{writes}
}
