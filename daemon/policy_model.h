// What sharing translations costs and saves, in CPU seconds: what `auto` decides by. docs/policy.md derives the model
// and says where its numbers come from; the functions here are pure, so that tests can play whole loads through them.
//
// A program that shares fetches its instructions from pages that lie on one memory node. Programs on other nodes lose
// time by that once several fetch at the same time. One that does not share translates everything itself and keeps
// code of its own. A copy of the image on each node takes the loss away and costs memory.
#pragma once

#include <cstdint>
#include <string>

#include "proto/messages.h"

namespace phybin::daemon {

struct CostModel {
  // Share of its CPU time that a program on another node loses when `contended_by` programs or more run from one
  // copy. Below that the loss falls off linearly, to none for one.
  double remote_loss = 0.08;
  unsigned contended_by = 4;
  // CPU seconds for translating one guest instruction.
  double translation = 0.5e-6;
  // Bytes that a copy is made of in a second.
  double copy_rate = 500e6;
  // Of the memory that is available, what private translations of one program may take.
  double private_share = 0.25;
};

// Programs of one name and user that map the same copies.
struct SharingLoad {
  unsigned instances = 1;         // that run from the same copy of the image, on all nodes
  bool remote = false;            // that copy lies on another node than these programs
  double remaining = 0;           // CPU seconds that one of them is expected to need yet
  uint64_t instructions = 0;      // guest instructions that one translates when it shares nothing; 0: not known
  uint64_t private_bytes = 0;     // of code that it then has for itself
  uint64_t memory_available = 0;  // bytes; 0: not known
  double compile_seconds = 0;     // CPU seconds that making its images took lately
  double saved_seconds = 0;       // CPU seconds that its images saved since
};

// Share of its CPU time that a program loses.
double remote_loss(const CostModel& model, unsigned instances, bool remote);

struct SharingVerdict {
  proto::CachePolicy value = proto::CachePolicy::kOn;
  double shared_cost = 0, private_cost = 0;  // CPU seconds of one instance, from now on
  std::string reason;                        // for people
};
SharingVerdict decide_sharing(const CostModel& model, const SharingLoad& load);

// A copy of an image that could be made for one node.
struct CopyLoad {
  uint64_t bytes = 0;      // of the image
  unsigned instances = 0;  // that run from the same copy, on all nodes
  unsigned here = 0;       // of them, on the node that has no copy
  double seconds = 0;      // CPU seconds that an instance is expected to need in all
  uint64_t room = 0;       // bytes that copies may still take
};
// Whether it saves more than it costs.
bool worth_copying(const CostModel& model, const CopyLoad& load);

}  // namespace phybin::daemon
