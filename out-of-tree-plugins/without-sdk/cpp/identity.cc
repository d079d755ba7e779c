#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "services.h"

namespace {

constexpr std::uint32_t kVersion = 1;

// LabelIn reads the arguments; std::invalid_argument with what is wrong.
std::string LabelIn(const std::string& json) {
  google::protobuf::Struct arguments;
  if (!google::protobuf::util::JsonStringToMessage(json, &arguments).ok()) {
    throw std::invalid_argument("arguments: must be a JSON object");
  }
  std::string label = "team";
  for (const auto& [key, value] : arguments.fields()) {
    if (key != "label") throw std::invalid_argument(key + ": unknown argument");
    label = value.string_value();
  }
  if (label.empty()) throw std::invalid_argument("label: must be a string that is not empty");
  return label;
}

}  // namespace

grpc::Status Identity::Handshake(grpc::ServerContext*, const pb::HandshakeRequest*,
                                 pb::HandshakeResponse* response) {
  response->set_name("same-label");
  response->set_version("0.1.0");
  response->add_supported_versions(kVersion);
  auto* capabilities = response->mutable_capabilities();
  capabilities->add_extension_points(pb::EXTENSION_POINT_FILTER);
  capabilities->add_extension_points(pb::EXTENSION_POINT_SCORE);
  auto* interest = capabilities->add_events();
  interest->set_resource("Node");
  interest->add_actions(pb::ACTION_TYPE_ADD);
  interest->add_actions(pb::ACTION_TYPE_UPDATE_NODE_LABEL);
  capabilities->mutable_pod_fields()->add_paths("/metadata/labels");
  capabilities->mutable_state()->set_nodes(true);
  capabilities->set_node_local(true);
  return grpc::Status::OK;
}

grpc::Status Identity::Configure(grpc::ServerContext*, const pb::ConfigureRequest* request,
                                 pb::ConfigureResponse* response) {
  const std::lock_guard<std::mutex> lock(session_.mutex);
  if (request->removed()) {
    session_.labels.erase(request->profile());
  } else if (request->protocol_version() != kVersion) {
    response->add_errors("another version of the protocol is spoken here");
  } else {
    try {
      auto label = LabelIn(request->has_arguments() ? request->arguments() : "{}");
      session_.labels[request->profile()] = std::move(label);
    } catch (const std::invalid_argument& error) {
      response->add_errors(error.what());
    }
  }
  session_.Changed();
  return grpc::Status::OK;
}
