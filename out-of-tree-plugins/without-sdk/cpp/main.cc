// A plugin for Berth on grpc++ alone: same-label keeps pods on nodes with their own value of a label.

#include <grpcpp/health_check_service_interface.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <iostream>

#include "services.h"

namespace {

// Calls grow with the cluster, while grpc++ takes 4 MiB by default.
constexpr int kLargestCall = 64 << 20;
constexpr char kReadiness[] = "berth.plugin.v1.SchedulingService";

}  // namespace

int main() {
  const char* address = std::getenv("BERTH_PLUGIN_ADDRESS");
  if (address == nullptr) {
    std::cerr << "BERTH_PLUGIN_ADDRESS: an address unix:PATH is needed\n";
    return 1;
  }
  // All threads leave the signal to this one.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  umask(0177);  // The socket is closed to other users from its first moment on.

  Session session;
  Identity identity(session);
  State state(session);
  Scheduling scheduling(session);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(kLargestCall);
  builder.RegisterService(&identity);
  builder.RegisterService(&state);
  builder.RegisterService(&scheduling);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  auto* health = server->GetHealthCheckService();
  {
    const std::lock_guard<std::mutex> lock(session.mutex);
    session.report_ready = [health](bool ready) { health->SetServingStatus(kReadiness, ready); };
    session.Changed();
  }
  int signal = 0;
  sigwait(&ends, &signal);
  // Streams are open for ever, so their ends are not waited for.
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}
