#include <optional>

#include "services.h"

namespace {

constexpr char kPasses = 0;
// Verdicts are rows of the reason table, counted from 1.
constexpr char kOtherValue = 1;
constexpr char kBest = 100;

// Answer is what is found for each node of a generation.
struct Answer {
  std::int64_t generation;
  std::string verdicts;
  std::string scores;
  bool any_passes = false;
};

// PodLabels reads the pod. None is kept: the host sends it again where a call came without it.
Labels PodLabels(const pb::PodRef& pod) {
  if (!pod.has_object()) throw Precondition("POD_UNKNOWN", "the pod's object is needed");
  try {
    return LabelsOf(pod.object());
  } catch (const std::invalid_argument& error) {
    throw Invalid(std::string("the pod: ") + error.what());
  }
}

std::optional<std::string> ValueOf(const Labels& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::nullopt : std::optional(found->second);
}

template <typename Request>
Answer AnswerTo(Session& session, const grpc::ServerContext& context, const Request& request) {
  std::unique_lock<std::mutex> lock(session.mutex);
  session.LabelOf(request.call().profile());
  session.WaitFor(request.call(), context, lock);
  const auto label = session.LabelOf(request.call().profile());
  const auto wanted = ValueOf(PodLabels(request.call().pod()), label);
  const auto& nodes = session.held.nodes;
  const auto& bitmap = request.candidates().bitmap();
  if (request.has_candidates() && bitmap.size() != (nodes.size() + 7) / 8) {
    throw Invalid("a bitmap for another number of nodes");
  }
  Answer answer{session.held.generation, std::string(nodes.size(), kPasses), std::string(nodes.size(), 0)};
  for (std::size_t i = 0; i < nodes.size(); i++) {
    const auto value = ValueOf(nodes[i].labels, label);
    if (value && value == wanted) answer.scores[i] = kBest;
    if (value && value != wanted) answer.verdicts[i] = kOtherValue;
    const bool asked = !request.has_candidates() || (bitmap[i / 8] >> i % 8 & 1);
    answer.any_passes |= asked && answer.verdicts[i] == kPasses;
  }
  return answer;
}

void Fill(const Answer& answer, pb::FilterResponse& response) {
  response.set_generation(answer.generation);
  response.mutable_status()->set_code(pb::CODE_SUCCESS);
  response.mutable_verdicts()->set_each(answer.verdicts);
  auto* reason = response.mutable_verdicts()->add_reasons();
  reason->set_code(pb::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
  reason->set_text("node(s) had another value of the pod's label");
}

void Fill(const Answer& answer, pb::ScoreResponse& response) {
  response.set_generation(answer.generation);
  response.mutable_status()->set_code(pb::CODE_SUCCESS);
  response.mutable_scores()->set_uint8(answer.scores);
  response.mutable_scores()->set_normalization(pb::NORMALIZATION_NONE);
}

void Fill(const Answer& answer, pb::FilterScoreResponse& response) {
  Fill(answer, *response.mutable_filter());
  if (answer.any_passes) Fill(answer, *response.mutable_score());
}

template <typename Request, typename Response>
grpc::Status Reply(Session& session, grpc::ServerContext& context, const Request& request, Response& response) {
  try {
    Fill(AnswerTo(session, context, request), response);
    return grpc::Status::OK;
  } catch (const Failed& failed) {
    if (!failed.reason.empty()) context.AddTrailingMetadata("berth-reason", failed.reason);
    return failed.status;
  }
}

}  // namespace

grpc::Status Scheduling::Filter(grpc::ServerContext* context, const pb::FilterRequest* request,
                                pb::FilterResponse* response) {
  return Reply(session_, *context, *request, *response);
}

grpc::Status Scheduling::Score(grpc::ServerContext* context, const pb::ScoreRequest* request,
                               pb::ScoreResponse* response) {
  return Reply(session_, *context, *request, *response);
}

grpc::Status Scheduling::FilterScore(grpc::ServerContext* context, const pb::FilterScoreRequest* request,
                                     pb::FilterScoreResponse* response) {
  return Reply(session_, *context, *request, *response);
}
