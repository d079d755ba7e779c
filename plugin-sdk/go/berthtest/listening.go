package berthtest

import (
	"context"

	pb "berth.dev/plugin-sdk/go/internal/pluginv1"
)

// Said is a message of the plugin's own: "requeue", "requeue_all", "allow",
// "reject" or "sort_keys".
type Said struct {
	What  string
	UIDs  []string
	Cause string
}

// Listen opens the stream on which the plugin speaks; the channel gives what it says.
func (h *Host) Listen() <-chan Said {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h.t.Cleanup(cancel)
	stream, err := h.queueing.Requeue(ctx, &pb.RequeueRequest{})
	must(h.t, err)
	_, err = stream.Header() // from now on the plugin is heard
	must(h.t, err)
	heard := make(chan Said, 100)
	go func() {
		defer close(heard)
		for {
			message, err := stream.Recv()
			if err != nil {
				return
			}
			heard <- said(message)
		}
	}()
	return heard
}

func said(message *pb.RequeueResponse) Said {
	switch action := message.Action.(type) {
	case *pb.RequeueResponse_Requeue:
		return Said{"requeue", action.Requeue.Uids, message.Cause}
	case *pb.RequeueResponse_AllowWaiting:
		return Said{"allow", action.AllowWaiting.Uids, message.Cause}
	case *pb.RequeueResponse_RejectWaiting:
		return Said{"reject", action.RejectWaiting.Uids, message.Cause}
	case *pb.RequeueResponse_SortKeys:
		return Said{"sort_keys", action.SortKeys.Uids, message.Cause}
	}
	return Said{"requeue_all", nil, message.Cause}
}
