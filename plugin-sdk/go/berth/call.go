package berth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// Call is the call that a function answers.
type Call struct {
	Profile Profile
	Key     PodKey
}

type callKey struct{}

// CurrentCall gives the call that is being answered: its profile, and the pod's
// attempt. The context is that of the function that was called; with any other
// the zero Call comes back.
func CurrentCall(ctx context.Context) Call {
	current, _ := ctx.Value(callKey{}).(Call)
	return current
}

// call is one question on its way through the author's functions.
type call struct {
	ctx     context.Context
	session *session
	plugin  *Plugin
	here    *place
	head    *pb.Call
	span    trace.Span
}

// fullMethods has the unary calls by their names: no two services have one of the same name.
var fullMethods = func() map[string]string {
	names := map[string]string{}
	for _, service := range []grpc.ServiceDesc{
		pb.SchedulingService_ServiceDesc, pb.PlacementService_ServiceDesc, pb.GroupService_ServiceDesc,
		pb.QueueingService_ServiceDesc,
	} {
		for _, method := range service.Methods {
			names[method.MethodName] = service.ServiceName + "/" + method.MethodName
		}
	}
	return names
}()

// full is a call's name with its service's.
func full(method string) string { return fullMethods[method] }

// headed is a request about a pod or its group.
type headed interface{ GetCall() *pb.Call }

// answered answers one request in its turn, within a span of its own.
func answered[Q headed, R any](
	ctx context.Context, server *Server, here *place, name string, carrier traceCarrier,
	request Q, function func(*call, Q) (R, error),
) (response R, err error) {
	s := server.session
	started := time.Now()
	ctx, span := server.tracing.span(ctx, s.plugin.Name+"/"+name, carrier)
	defer func() {
		if problem := recover(); problem != nil {
			logPanic(name, problem)
			err = fmt.Errorf("%s: %v", name, problem)
		}
		here.leave()
		endSpan(span, err)
		s.meter.answered(name, err, time.Since(started))
	}()
	if err = here.enter(ctx); err != nil {
		return response, fmt.Errorf("%s waited for the calls before it: %w", name, err)
	}
	head := request.GetCall()
	if head.GetPod() == nil {
		return response, invalid("%s: the call names no pod", name)
	}
	current := Call{s.profile(head.Profile), attemptOf(head.Pod)}
	ctx = context.WithValue(context.WithValue(ctx, placeKey{}, here), callKey{}, current)
	response, err = function(&call{ctx, s, s.plugin, here, head, span}, request)
	if span.IsRecording() && here.held {
		span.SetAttributes(
			attribute.String("berth.plugin", s.plugin.Name),
			attribute.String("rpc.system.name", carrier.system),
			attribute.String("rpc.method", full(name)),
			attribute.Int64("berth.generation", s.mirror.generation),
		)
	}
	return response, err
}

// asked catches up with the call's generation and gives its pod.
func (c *call) asked() (*corev1.Pod, error) {
	if err := c.session.catchUp(c.ctx, c.here, c.head); err != nil {
		return nil, err
	}
	return c.session.pod(c.head.Pod)
}

// askedOf gives the call's pod, and all nodes with those that it is about.
func (c *call) askedOf(message *pb.Candidates) (*corev1.Pod, *Nodes, error) {
	pod, err := c.asked()
	if err != nil {
		return nil, nil, err
	}
	asked, err := c.session.candidates(c.head, message)
	if err != nil {
		return nil, nil, err
	}
	return pod, asked.nodes(), nil
}

// chosen gives the pod and the node that it was given, nil if the node is gone.
func (c *call) chosen(nodeName string) (*corev1.Pod, *corev1.Node, error) {
	pod, err := c.asked()
	if err != nil {
		return nil, nil, err
	}
	return pod, c.session.node(nodeName), nil
}

func (c *call) key() PodKey { return attemptOf(c.head.Pod) }

// failure is the status of an author's failure, which is logged: the
// scheduler may go on without it.
func (c *call) failure(err error) *pb.Status {
	var known *contractError
	if !errors.As(err, &known) || !known.logged {
		failures.write("plugin", c.plugin.Name, "error", err.Error())
	}
	return &pb.Status{Code: pb.Code_CODE_ERROR, Reasons: []string{c.plugin.Name + ": " + err.Error()}}
}

// verdict calls a function that gives a status, and packs what comes back.
func (c *call) verdict(name string, function func() *Status, allowed ...Code) *pb.Status {
	var status *Status
	err := guarded(name, func() { status = function() })
	if err == nil {
		var packed *pb.Status
		if packed, err = packStatus(status, allowed...); err == nil {
			return packed
		}
	}
	return c.failure(err)
}

// tell calls a function whose failure is logged and nothing else.
func (c *call) tell(name string, function func()) {
	_ = guarded(name, function)
}

func (s *session) profile(name string) Profile {
	if known, configured := s.profiles[name]; configured {
		return known
	}
	return Profile{Name: name}
}

func attemptOf(ref *pb.PodRef) PodKey {
	return PodKey{UID: ref.GetUid(), Attempt: ref.GetAttempt(), Namespace: ref.GetNamespace(), Name: ref.GetName()}
}

func gone(nodeName string) *pb.Status {
	return &pb.Status{Code: pb.Code_CODE_UNSCHEDULABLE, Reasons: []string{"node " + nodeName + " is gone"}}
}
