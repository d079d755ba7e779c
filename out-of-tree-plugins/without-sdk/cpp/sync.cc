#include "services.h"

namespace {

enum class Stage { kWaiting, kTransferring, kFollowing };

// Stream is one Sync stream's place in the protocol.
struct Stream {
  Session& session;
  Stage stage = Stage::kWaiting;
  std::string epoch;
  pb::Chunk all;

  // Take takes one message, and returns whether it is acknowledged.
  bool Take(const pb::SyncRequest& request) {
    switch (request.body_case()) {
      case pb::SyncRequest::kBegin:
        return Begin(request.begin());
      case pb::SyncRequest::kChunk:
        Expect(Stage::kTransferring);
        all.MergeFrom(request.chunk());
        return false;
      case pb::SyncRequest::kCommit:
        Expect(Stage::kTransferring);
        session.held = Held::Transferred(epoch, request.commit(), all);
        all.Clear();
        stage = Stage::kFollowing;
        return true;
      case pb::SyncRequest::kDelta:
        Expect(Stage::kFollowing);
        session.held.Follow(request.delta());
        return true;
      default:
        throw Refused(pb::NACK_REASON_OUT_OF_ORDER, "an unknown message");
    }
  }

  bool Begin(const pb::Begin& begin) {
    epoch = begin.epoch();
    all.Clear();
    if (!begin.has_resume_generation()) {
      stage = Stage::kTransferring;
      return false;
    }
    const auto from = begin.resume_generation();
    if (epoch != session.held.epoch || from < 1 || from > session.held.generation) {
      throw Refused(pb::NACK_REASON_CANNOT_RESUME, "that is not held");
    }
    stage = Stage::kFollowing;
    return true;
  }

  void Expect(Stage wanted) const {
    if (stage != wanted) throw Refused(pb::NACK_REASON_OUT_OF_ORDER, "the message does not belong here");
  }

  // Answer writes the answer to one message, and returns whether there is one.
  bool Answer(const pb::SyncRequest& request, pb::SyncResponse& response) {
    bool answered = true;
    try {
      answered = Take(request);
      if (answered) response.mutable_ack()->set_generation(session.held.generation);
    } catch (const Refused& refused) {
      stage = Stage::kWaiting;
      session.held = Held();
      auto* nack = response.mutable_nack();
      nack->set_generation(request.has_delta() ? request.delta().generation() : request.commit().generation());
      nack->set_reason(refused.reason);
      nack->set_message(refused.what());
    }
    session.Changed();
    return answered;
  }
};

}  // namespace

grpc::Status State::Sync(grpc::ServerContext*,
                         grpc::ServerReaderWriter<pb::SyncResponse, pb::SyncRequest>* calls) {
  Stream stream{session_};
  int number = 0;
  pb::SyncResponse response;
  {
    const std::lock_guard<std::mutex> lock(session_.mutex);
    number = ++session_.streams;
    response.mutable_held()->set_epoch(session_.held.epoch);
    response.mutable_held()->set_generation(session_.held.generation);
  }
  calls->Write(response);
  pb::SyncRequest request;
  while (calls->Read(&request)) {
    bool answered = false;
    {
      const std::lock_guard<std::mutex> lock(session_.mutex);
      if (session_.streams != number) break;
      response.Clear();
      answered = stream.Answer(request, response);
    }
    if (answered) calls->Write(response);
  }
  return grpc::Status::OK;
}
