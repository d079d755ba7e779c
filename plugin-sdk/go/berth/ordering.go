package berth

import (
	"context"
	"log/slog"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// keyParts is how many numbers of a sort key the scheduler compares.
const keyParts = 8

// SortKeys says where pods stand in the queue; one that the plugin fails for has
// the key 0.
func (q *queueingService) SortKeys(ctx context.Context, request *pb.SortKeysRequest) (*pb.SortKeysResponse, error) {
	return besides(ctx, q.server, "SortKeys", func(context.Context) (*pb.SortKeysResponse, error) {
		return q.server.session.sortKeys(request)
	})
}

func (s *session) sortKeys(request *pb.SortKeysRequest) (*pb.SortKeysResponse, error) {
	if _, known := s.profiles[request.Profile]; !known {
		return nil, refused(notConfigured, "profile %q was not configured", request.Profile)
	}
	plugin := s.plugin
	if request.Anew && plugin.QueueReset != nil {
		_ = guarded("QueueReset", func() { plugin.QueueReset(request.Profile) })
	}
	if len(request.LeftUids) > 0 && plugin.PodsLeft != nil {
		_ = guarded("PodsLeft", func() { plugin.PodsLeft(request.LeftUids) })
	}
	response := &pb.SortKeysResponse{}
	for _, ref := range request.Pods {
		response.Keys = append(response.Keys, &pb.SortKey{Parts: s.sortKey(ref)})
	}
	return response, nil
}

func (s *session) sortKey(ref *pb.PodRef) (key []int64) {
	pod := s.waiting(ref)
	if pod == nil || s.plugin.SortKey == nil {
		return nil
	}
	if err := guarded("SortKey", func() { key = s.plugin.SortKey(pod) }); err != nil {
		return nil
	}
	if len(key) > keyParts {
		slog.Warn("pod without a sort key: too many parts", "pod", ref.Namespace+"/"+ref.Name, "parts", len(key))
		return nil
	}
	return key
}
