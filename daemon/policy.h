// Which policy holds for each worker: the one place that decides it. A worker reads one word of the policy page,
// which all of them have mapped; a decision that changes reaches running workers by a store into that word.
//
// Workers of the same program, user, own wish and distance from their images form a class and share a word. What
// holds for a class follows from the settings (policy_settings.h); where those leave it to the daemon, from what it
// measures and the cost model (policy_model.h). docs/policy.md tells all of it.
//
// On the event thread only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "daemon/policy_model.h"
#include "daemon/policy_settings.h"
#include "daemon/policy_store.h"
#include "daemon/run_history.h"
#include "daemon/topology.h"
#include "proto/messages.h"

namespace phybin::daemon {

// What is known of a worker when it comes.
struct PolicySubject {
  std::string program;  // name without directories
  uint32_t uid;
  uint32_t cpu;               // that it runs on
  proto::CachePolicy wanted;  // its own option
};

// What the kernel says of a process.
struct ProcessSample {
  double cpu_seconds = 0;       // of all its threads
  std::optional<unsigned> cpu;  // that it ran on last; none: not known
};
using Sampler = std::function<std::optional<ProcessSample>(pid_t)>;
// From /proc/PID/stat.
std::optional<ProcessSample> sample_process(pid_t pid);
// The same without the CPU, which is not one of a simulated topology.
std::optional<ProcessSample> sample_time(pid_t pid);

class Policy {
 public:
  using Clock = std::chrono::steady_clock;

  struct Class;

  // A worker that is there. Belongs to the Policy, from join() to leave().
  struct Member {
    PolicySubject subject;
    pid_t pid = 0;
    const proto::WorkerPage* page = nullptr;
    unsigned node = 0;       // index into the topology; follows the process
    double cpu_seconds = 0;  // used so far, as far as is known
    bool remote = false;     // its program's image lies on another node
    Class* group = nullptr;
    Clock::time_point joined, sampled;
  };

  struct Class {
    std::string program;
    uint32_t uid = 0;
    proto::CachePolicy wanted = proto::CachePolicy::kAuto;
    bool remote = false;
    uint32_t word = 0;
    proto::CachePolicy value = proto::CachePolicy::kOn;  // in force
    bool automatic = false;                              // the daemon's own decision
    std::string reason;
    std::unordered_set<const Member*> members;
  };
  using ClassKey = std::tuple<std::string, uint32_t, proto::CachePolicy, bool>;

  // Writes to `page`, which must stay mapped.
  Policy(proto::PolicyPage& page, Topology topology, Sampler sampler = sample_process);
  ~Policy();

  // Reads settings and history from the file, and keeps them there from now on. An empty string, or what is wrong;
  // everything works without it, and is forgotten at the end.
  std::string open(const std::string& file);

  // A worker has come. `page` must stay mapped until leave(). `remote`: its program's image lies on another node.
  Member* join(const PolicySubject& subject, pid_t pid, const proto::WorkerPage* page, bool remote,
               Clock::time_point now = Clock::now());
  void leave(Member* member, Clock::time_point now = Clock::now());
  // Index of the word that a worker is to obey, until the end of its life.
  uint32_t word(const Member& member) const { return member.group->word; }
  proto::CachePolicy value(const Member& member) const { return member.group->value; }
  // An image of a program of that name was made for that user.
  void note_compile(const std::string& program, uint32_t uid, double seconds);
  // Called once a second.
  void tick(Clock::time_point now = Clock::now());

  // Settings. Running workers obey at once. An empty string, or why the setting could not be kept; it holds all the
  // same.
  std::string set(const PolicyScope& scope, proto::CachePolicy value);
  std::string unset(const PolicyScope& scope, bool& found);
  const PolicySettings& settings() const { return settings_; }

  const std::map<ClassKey, Class>& classes() const { return classes_; }
  const Topology& topology() const { return topology_; }
  const RunHistory& history() const { return history_; }
  const CostModel& model() const { return model_; }
  // What workers counted that have left. A worker may write anything into its page, so no single one adds more than
  // kMostOfWorker.
  struct Counted {
    uint64_t guest_instructions = 0, regions = 0, image_links = 0;
    void add(const proto::WorkerPage& page);
  };
  static constexpr uint64_t kMostOfWorker = 1ull << 44;
  const Counted& counted() const { return counted_; }
  // Workers of this program name, of all users, and the nodes they are on (as bits of 64).
  unsigned instances(const std::string& program) const;
  uint64_t nodes_of(const std::string& program) const;
  // Share of its guest instructions that a worker took from images; none if it is not known what there was to save.
  std::optional<double> hit_rate(const Member& member) const;

 private:
  void decide(Class& group);
  SharingLoad measure(const Class& group) const;
  void publish(Class& group, proto::CachePolicy value);
  uint32_t take_word();
  void release_word(uint32_t word);
  void store_overflow();
  void sample(Member& member, Clock::time_point now);
  void note_saved(const Member& member, const Run& run);
  void forget_balances();
  void save();

  proto::PolicyPage& page_;
  Topology topology_;
  Sampler sampler_;
  CostModel model_;
  PolicySettings settings_;
  RunHistory history_;
  Counted counted_;
  PolicyStore store_;
  std::map<ClassKey, Class> classes_;
  std::unordered_set<std::unique_ptr<Member>> members_;
  std::map<std::string, unsigned, std::less<>> instances_;  // workers of each program name
  // What images cost and saved lately, in CPU seconds; halved each hour.
  struct Balance {
    double compiled = 0, saved = 0;
  };
  std::map<RunHistory::Key, Balance> balances_;
  std::deque<uint32_t> free_words_;
  uint64_t ticks_ = 0;
  uint64_t memory_available_ = 0;  // bytes, at the last tick
};

}  // namespace phybin::daemon
