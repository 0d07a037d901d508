// Which policy holds for a worker: the one place that decides it. A worker reads one word of the policy page, which
// all of them have mapped; a decision that changes reaches running workers by a store into that word.
#pragma once

#include <cstdint>
#include <string>

#include "proto/messages.h"

namespace phybin::daemon {

// What is known of a worker when it comes.
struct PolicySubject {
  std::string program;  // name without directories
  uint32_t uid;
  uint32_t cpu;               // that it runs on
  proto::CachePolicy wanted;  // its own option
};

class Policy {
 public:
  // Writes to `page`, which must stay mapped.
  explicit Policy(proto::PolicyPage& page);

  // A worker has come: the index of its word. Workers of which the same holds share a word.
  uint32_t join(const PolicySubject& subject);
  void leave(const PolicySubject& subject, uint32_t word);
  // What a word says now.
  proto::CachePolicy value(uint32_t word) const;
  // Called once a second.
  void tick();

 private:
  proto::PolicyPage& page_;
};

}  // namespace phybin::daemon
