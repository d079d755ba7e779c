package berth

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

type queueingService struct {
	pb.UnimplementedQueueingServiceServer
	server *Server
}

// QueueingHints fills in the table; pods that aren't remembered are queued and
// named. A failure of the author's is the call's, which the host takes for: queue
// them.
func (q *queueingService) QueueingHints(
	ctx context.Context, request *pb.QueueingHintsRequest,
) (*pb.QueueingHintsResponse, error) {
	return besides(ctx, q.server, "QueueingHints", func(ctx context.Context) (*pb.QueueingHintsResponse, error) {
		return q.server.session.hints(request)
	})
}

func (s *session) hints(request *pb.QueueingHintsRequest) (*pb.QueueingHintsResponse, error) {
	var present []*corev1.Pod
	var columns []int
	unknown := make([]bool, len(request.Pods))
	for column, ref := range request.Pods {
		if pod := s.waiting(ref); pod != nil {
			present, columns = append(present, pod), append(columns, column)
		} else {
			unknown[column] = true
		}
	}
	events := make([]Event, len(request.Events))
	for i, event := range request.Events {
		events[i] = Event{event.Resource, Action(event.Action), event.OldObject, event.NewObject}
	}
	table, err := s.plugin.hintTable(present, events)
	if err != nil {
		return nil, err
	}
	response := &pb.QueueingHintsResponse{}
	if len(present) < len(request.Pods) {
		response.UnknownPods = packBits(unknown)
	}
	for _, row := range table {
		whole := append([]bool(nil), unknown...)
		for i, column := range columns {
			whole[column] = row[i]
		}
		response.Hints = append(response.Hints, packHint(whole))
	}
	return response, nil
}

// waiting gives a rejected pod, as sent or as last seen, nil if it is not at hand.
func (s *session) waiting(ref *pb.PodRef) *corev1.Pod {
	if ref.Object == nil {
		return s.pods.latest(ref.Uid)
	}
	pod, err := s.pods.put(ref)
	if err != nil {
		return nil
	}
	return pod
}

// hintTable asks the author by whichever form; a row an event, a column a pod.
func (p *Plugin) hintTable(pods []*corev1.Pod, events []Event) (table [][]bool, err error) {
	err = guarded("QueueingHints", func() {
		if p.QueueingHints != nil && len(pods) > 0 {
			table = p.QueueingHints(pods, events)
		} else {
			table = p.hintEach(pods, events)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(table) != len(events) {
		return nil, broken("QueueingHints: expected %d rows, got %d", len(events), len(table))
	}
	for i, row := range table {
		if len(row) != len(pods) {
			return nil, broken("QueueingHints: row %d has %d columns for %d pods", i, len(row), len(pods))
		}
	}
	return table, nil
}

func (p *Plugin) hintEach(pods []*corev1.Pod, events []Event) [][]bool {
	table := make([][]bool, len(events))
	for i, event := range events {
		table[i] = make([]bool, len(pods))
		for j, pod := range pods {
			table[i][j] = p.QueueingHint == nil || p.QueueingHint(pod, event)
		}
	}
	return table
}

func packHint(row []bool) *pb.Hint {
	queued := 0
	for _, each := range row {
		if each {
			queued++
		}
	}
	if queued == 0 || queued == len(row) {
		return &pb.Hint{Queue: &pb.Hint_All{All: queued > 0}}
	}
	return &pb.Hint{Queue: &pb.Hint_Pods{Pods: packBits(row)}}
}

// Requeue passes on what the plugin says, until the host hangs up.
func (q *queueingService) Requeue(_ *pb.RequeueRequest, stream grpc.ServerStreamingServer[pb.RequeueResponse]) error {
	if q.server.plugin.Requeue == nil {
		select {
		case <-stream.Context().Done():
		case <-q.server.stopping:
		}
		return nil
	}
	heard, end := q.server.plugin.Requeue.listen()
	defer end()
	if err := stream.SendHeader(nil); err != nil { // says that nothing is lost from now on
		return err
	}
	for {
		select {
		case <-heard.filled:
			for _, message := range heard.take() {
				if err := stream.Send(message); err != nil {
					return fmt.Errorf("requeue: %w", err)
				}
			}
		case <-stream.Context().Done():
			return nil
		case <-q.server.stopping:
			return nil
		}
	}
}
