// Memory that the daemon shares with workers. The daemon makes it, so its size is certain and nobody can take pages
// away under a reader.
#pragma once

#include <optional>

#include "daemon/descriptor.h"
#include "proto/messages.h"

namespace phybin::daemon {

// A new memfd that can be sealed and not executed. No value: errno says why.
std::optional<Descriptor> make_memory_file(const char* name);

// The page that all workers read and only the daemon writes.
class PolicyMemory {
 public:
  PolicyMemory();  // throws std::system_error
  ~PolicyMemory();
  PolicyMemory(const PolicyMemory&) = delete;
  PolicyMemory& operator=(const PolicyMemory&) = delete;

  proto::PolicyPage& page() { return *page_; }
  // Opened for reading, and cannot be opened otherwise by another user.
  int file() const { return file_.get(); }

 private:
  proto::PolicyPage* page_ = nullptr;
  Descriptor file_;
};

// A worker's page: the worker writes, the daemon reads.
class WorkerMemory {
 public:
  WorkerMemory() = default;
  ~WorkerMemory();
  WorkerMemory(const WorkerMemory&) = delete;
  WorkerMemory& operator=(const WorkerMemory&) = delete;

  // Makes the memory; false: errno says why.
  bool create();
  // To be sent to the worker.
  int file() const { return file_.get(); }
  // The counters. The ring is read with drain_ring(), through the file: a page of it that the worker has never
  // written would otherwise be allocated at the daemon's expense.
  const proto::WorkerPage* page() const { return page_; }

 private:
  const proto::WorkerPage* page_ = nullptr;
  Descriptor file_;
};

}  // namespace phybin::daemon
