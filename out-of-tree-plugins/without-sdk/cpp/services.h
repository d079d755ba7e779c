#pragma once

#include "berth/plugin/v1/identity.grpc.pb.h"
#include "berth/plugin/v1/scheduling.grpc.pb.h"
#include "berth/plugin/v1/state.grpc.pb.h"
#include "session.h"

// Identity says who the plugin is, and takes each profile's arguments.
class Identity final : public pb::IdentityService::Service {
 public:
  explicit Identity(Session& session) : session_(session) {}
  grpc::Status Handshake(grpc::ServerContext* context, const pb::HandshakeRequest* request,
                         pb::HandshakeResponse* response) override;
  grpc::Status Configure(grpc::ServerContext* context, const pb::ConfigureRequest* request,
                         pb::ConfigureResponse* response) override;

 private:
  Session& session_;
};

// State follows the host's state stream.
class State final : public pb::StateService::Service {
 public:
  explicit State(Session& session) : session_(session) {}
  grpc::Status Sync(grpc::ServerContext* context,
                    grpc::ServerReaderWriter<pb::SyncResponse, pb::SyncRequest>* stream) override;

 private:
  Session& session_;
};

// Scheduling keeps pods on nodes whose label has the value that the pod's own label of that key has. Nodes without
// the label are open to all pods; nodes with the pod's own value are better.
class Scheduling final : public pb::SchedulingService::Service {
 public:
  explicit Scheduling(Session& session) : session_(session) {}
  grpc::Status Filter(grpc::ServerContext* context, const pb::FilterRequest* request,
                      pb::FilterResponse* response) override;
  grpc::Status Score(grpc::ServerContext* context, const pb::ScoreRequest* request,
                     pb::ScoreResponse* response) override;
  grpc::Status FilterScore(grpc::ServerContext* context, const pb::FilterScoreRequest* request,
                           pb::FilterScoreResponse* response) override;

 private:
  Session& session_;
};
