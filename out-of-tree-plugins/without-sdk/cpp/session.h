#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "berth/plugin/v1/common.pb.h"
#include "held.h"

// Failed is a call that is answered with a status. The reason, where there is one, says what the host has to do
// before it repeats the call.
struct Failed {
  grpc::Status status;
  std::string reason;
};

Failed Precondition(const std::string& reason, const std::string& message);
Failed Invalid(const std::string& message);

// Session is what all services of the process share. Everything is read and changed under its mutex.
struct Session {
  std::mutex mutex;
  // The label that each profile's arguments name.
  std::map<std::string, std::string> labels;
  Held held;
  // Numbers the Sync streams; the one opened last counts.
  int streams = 0;
  // Reports whether calls can be answered.
  std::function<void(bool)> report_ready = [](bool) {};

  // Changed wakes the calls that wait for a generation, and reports readiness.
  void Changed();
  // LabelOf returns the label that the profile's arguments name.
  const std::string& LabelOf(const std::string& profile) const;
  // WaitFor returns when the call can be answered from what is held.
  void WaitFor(const pb::Call& call, const grpc::ServerContext& context, std::unique_lock<std::mutex>& lock);

 private:
  void TakeOver(const pb::Call& call);
  std::condition_variable changed_;
};
