// What a worker says and is told (proto/messages.h): one for each connected worker. Everything from the worker is
// copied once and checked before it is used.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/connection.h"
#include "daemon/pages.h"
#include "daemon/policy.h"
#include "proto/messages.h"

namespace phybin::daemon {

class WorkerSession {
 public:
  WorkerSession(Daemon& daemon, Connection& connection);
  ~WorkerSession();

  void receive(std::string_view message, std::vector<Descriptor> files);
  // The connection has ended: takes what is left in the ring.
  void ended();

  const std::string& program() const { return subject_.program; }
  // What the policy knows of it; null before the worker has said hello.
  const Policy::Member* member() const { return member_; }
  const proto::WorkerPage* page() const { return memory_.page(); }
  std::chrono::steady_clock::time_point started() const { return started_; }

 private:
  void hello(const proto::Hello& message, std::vector<Descriptor> files);
  void module_met(const proto::ModuleMet& message, std::vector<Descriptor> files);

  Daemon& daemon_;
  Connection& connection_;
  bool welcomed_ = false;
  PolicySubject subject_{};
  Policy::Member* member_ = nullptr;
  WorkerMemory memory_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace phybin::daemon
