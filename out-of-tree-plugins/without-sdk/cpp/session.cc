#include "session.h"

#include <chrono>

namespace {
// A thread that waits cannot be woken when its call is cancelled, so it looks now and then.
constexpr std::chrono::milliseconds kLook{50};
}  // namespace

void Session::Changed() {
  report_ready(!labels.empty() && held.generation > 0);
  changed_.notify_all();
}

const std::string& Session::LabelOf(const std::string& profile) const {
  const auto found = labels.find(profile);
  if (found == labels.end()) throw Precondition("NOT_CONFIGURED", "the profile was not configured");
  return found->second;
}

void Session::WaitFor(const pb::Call& call, const grpc::ServerContext& context,
                      std::unique_lock<std::mutex>& lock) {
  TakeOver(call);
  while (held.epoch == call.epoch() && held.generation < call.generation()) {
    if (context.IsCancelled()) throw Failed{{grpc::StatusCode::CANCELLED, "the caller has gone"}, ""};
    changed_.wait_for(lock, kLook);
  }
  if (held.generation == 0 || held.epoch != call.epoch()) {
    throw Precondition("NOT_SYNCED", "another epoch is held, or none");
  }
  if (call.generation() < held.indices_since) {
    throw Precondition("GENERATION_GONE", "nodes have other indices now");
  }
}

void Session::TakeOver(const pb::Call& call) {
  if (call.deltas().empty() || held.epoch != call.epoch()) return;
  try {
    for (const pb::Delta& delta : call.deltas()) held.Follow(delta);
  } catch (const Refused& refused) {
    // After a gap the stream will bring what is missing.
    if (refused.reason != pb::NACK_REASON_GAP) {
      held = Held();
      Changed();
      throw Precondition("NOT_SYNCED", refused.what());
    }
  }
  Changed();
}

Failed Precondition(const std::string& reason, const std::string& message) {
  return {{grpc::StatusCode::FAILED_PRECONDITION, message}, reason};
}

Failed Invalid(const std::string& message) { return {{grpc::StatusCode::INVALID_ARGUMENT, message}, ""}; }
