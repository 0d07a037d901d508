// Policies: which setting wins, what running workers are told, what `auto` decides and what that costs.
#include "daemon/policy.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

namespace phybin::daemon {
namespace {

using proto::CachePolicy;
using Clock = Policy::Clock;
constexpr CachePolicy kOff = CachePolicy::kOff, kRead = CachePolicy::kRead, kOn = CachePolicy::kOn,
                      kAuto = CachePolicy::kAuto;

struct Folder {
  std::filesystem::path path;
  Folder() {
    char name[] = "/tmp/phybin-policy-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

// `nodes` nodes of `cpus` CPUs each.
Topology machine(unsigned nodes, unsigned cpus) {
  Topology topology;
  topology.cpus.clear();
  for (unsigned node = 0; node != nodes; ++node) {
    topology.ids.push_back(node);
    topology.cpus.emplace_back();
    for (unsigned cpu = 0; cpu != cpus; ++cpu) topology.cpus.back().push_back(node * cpus + cpu);
  }
  return topology;
}

TEST(PolicySettings, MostSpecificWins) {
  // Settings are made for the scopes whose letters stand in `set`: b(oth), p(rogram), u(ser), m(achine).
  const struct {
    const char* set;
    CachePolicy result;
  } cases[] = {{"", kAuto},   {"m", kOff},   {"u", kRead},    {"um", kRead}, {"p", kOn},
               {"pm", kOn},   {"pu", kOn},   {"pum", kOn},    {"b", kAuto},  {"bm", kAuto},
               {"bu", kAuto}, {"bp", kAuto}, {"bpum", kAuto}, {"o", kAuto},  {"om", kOff}};
  for (const auto& [set, result] : cases) {
    PolicySettings settings;
    for (const char* scope = set; *scope != 0; ++scope) {
      switch (*scope) {
        case 'b':
          settings.set({"prog", 7}, kAuto);
          break;
        case 'p':
          settings.set({"prog", std::nullopt}, kOn);
          break;
        case 'u':
          settings.set({std::nullopt, 7}, kRead);
          break;
        case 'm':
          settings.set({}, kOff);
          break;
        default:  // of others: must not matter
          settings.set({"other", 7}, kRead);
          settings.set({"prog", 8}, kRead);
          settings.set({std::nullopt, 8}, kRead);
      }
    }
    EXPECT_EQ(settings.resolve("prog", 7), result) << set;
  }
  PolicySettings settings;
  settings.set({"prog", std::nullopt}, kOff);
  EXPECT_TRUE(settings.unset({"prog", std::nullopt}));
  EXPECT_FALSE(settings.unset({"prog", std::nullopt}));
  EXPECT_EQ(settings.resolve("prog", 7), kAuto);
}

TEST(PolicySettings, NeitherSideGetsMoreThanItAllows) {
  const struct {
    CachePolicy wanted, setting, result;
  } cases[] = {{kAuto, kAuto, kAuto}, {kAuto, kOff, kOff}, {kAuto, kRead, kRead}, {kAuto, kOn, kOn},
               {kOn, kAuto, kOn},     {kOn, kOff, kOff},   {kOn, kRead, kRead},   {kOn, kOn, kOn},
               {kRead, kAuto, kRead}, {kRead, kOff, kOff}, {kRead, kRead, kRead}, {kRead, kOn, kRead},
               {kOff, kAuto, kOff},   {kOff, kOn, kOff}};
  for (const auto& [wanted, setting, result] : cases) {
    EXPECT_EQ(combine(wanted, setting), result) << policy_name(wanted) << " " << policy_name(setting);
  }
  for (CachePolicy value : {kOff, kRead, kOn, kAuto}) EXPECT_EQ(parse_policy(policy_name(value)), value);
  for (const char* bad : {"", "ON", "on ", "auto,off"}) EXPECT_EQ(parse_policy(bad), std::nullopt) << bad;
}

TEST(Topology, CpuLists) {
  using List = std::vector<unsigned>;
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11\n"), (List{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list(""), List{});
  EXPECT_EQ(parse_cpu_list("\n"), List{});
  EXPECT_EQ(parse_cpu_list("x,3-,5"), List{5});
  EXPECT_EQ(parse_cpu_list("0-4294967295,2"), List{2});
}

TEST(Topology, ReadsNodesAndLeavesOutThoseWithoutCpus) {
  const Folder folder;
  for (const auto& [name, list] : {std::pair{"node0", "0-1"}, {"node2", "4,6"}, {"node10", "8-9"}, {"node1", ""}}) {
    std::filesystem::create_directory(folder.path / name);
    std::ofstream(folder.path / name / "cpulist") << list << "\n";
  }
  std::filesystem::create_directory(folder.path / "power");
  const Topology topology = read_topology(folder.path);
  EXPECT_EQ(topology.ids, (std::vector<unsigned>{0, 2, 10}));
  EXPECT_EQ(topology.node_of(1), 0u);
  EXPECT_EQ(topology.node_of(6), 1u);
  EXPECT_EQ(topology.node_of(9), 2u);
  EXPECT_EQ(topology.node_of(5), 0u);
  EXPECT_EQ(read_topology(folder.path / "none").nodes(), 1u);
}

TEST(RunHistory, RemainingTimeIsThatOfLongerRuns) {
  RunHistory history;
  const RunHistory::Key key{"prog", 1};
  EXPECT_EQ(history.remaining(key, 5), 5);  // nothing known: as long again
  for (double seconds : {1.0, 10.0, 100.0}) history.add(key, {seconds, 0, 0});
  EXPECT_DOUBLE_EQ(history.remaining(key, 0), 37);
  EXPECT_DOUBLE_EQ(history.remaining(key, 2), (8 + 98) / 2.0);
  EXPECT_DOUBLE_EQ(history.remaining(key, 50), 50);
  EXPECT_DOUBLE_EQ(history.remaining(key, 200), 200);
  EXPECT_EQ(history.remaining({"prog", 2}, 3), 3);
  // Old runs are forgotten.
  for (unsigned i = 0; i != RunHistory::kRuns; ++i) history.add(key, {3, 0, 0});
  EXPECT_DOUBLE_EQ(history.remaining(key, 0), 3);
}

// A Policy with what it needs, and processes that it can look at.
struct Fixture {
  std::unique_ptr<proto::PolicyPage> page = std::make_unique<proto::PolicyPage>();
  std::vector<std::unique_ptr<proto::WorkerPage>> pages;
  std::map<pid_t, ProcessSample> processes;
  Clock::time_point now{};
  Policy policy;

  explicit Fixture(Topology topology)
      : policy(*page, std::move(topology), [this](pid_t pid) -> std::optional<ProcessSample> {
          const auto found = processes.find(pid);
          if (found == processes.end()) return std::nullopt;
          return found->second;
        }) {}

  Policy::Member* join(const char* program, uint32_t uid = 1, CachePolicy wanted = kAuto, bool remote = false,
                       unsigned cpu = 0) {
    pages.push_back(std::make_unique<proto::WorkerPage>());
    return policy.join({program, uid, cpu, wanted}, static_cast<pid_t>(pages.size()), pages.back().get(), remote,
                       now);
  }
  CachePolicy told(const Policy::Member* member) const {
    return static_cast<CachePolicy>(page->words[policy.word(*member)].load());
  }
};

TEST(Policy, SettingsReachRunningWorkers) {
  Fixture f(machine(1, 4));
  auto* first = f.join("prog");
  auto* second = f.join("prog", 2);
  auto* third = f.join("other", 1, kRead);
  EXPECT_NE(f.policy.word(*first), f.policy.word(*second));
  EXPECT_EQ(f.told(first), kOn);
  EXPECT_EQ(f.told(third), kRead);
  f.policy.set({"prog", std::nullopt}, kOff);
  EXPECT_EQ(f.told(first), kOff);
  EXPECT_EQ(f.told(second), kOff);
  EXPECT_EQ(f.told(third), kRead);
  f.policy.set({"prog", 2}, kRead);
  EXPECT_EQ(f.told(first), kOff);
  EXPECT_EQ(f.told(second), kRead);
  f.policy.set({}, kOff);
  EXPECT_EQ(f.told(third), kOff);
  bool found = false;
  f.policy.unset({"prog", std::nullopt}, found);
  EXPECT_TRUE(found);
  EXPECT_EQ(f.told(first), kOff);  // the machine's now
  f.policy.unset({}, found);
  EXPECT_EQ(f.told(first), kOn);
  f.policy.unset({}, found);
  EXPECT_FALSE(found);
  // One of the same class shares the word; the next class takes a fresh one.
  EXPECT_EQ(f.policy.word(*f.join("prog")), f.policy.word(*first));
}

TEST(Policy, MoreClassesThanWords) {
  Fixture f(machine(1, 4));
  std::vector<Policy::Member*> members;
  std::map<uint32_t, unsigned> words;
  for (unsigned i = 0; i != proto::PolicyPage::kWords + 100; ++i) {
    members.push_back(f.join("prog", i));
    ++words[f.policy.word(*members.back())];
  }
  EXPECT_EQ(words.size(), size_t{proto::PolicyPage::kWords});
  // Those who share the last word get what the least sharing one of them may have; the others what is theirs.
  f.policy.set({std::nullopt, proto::PolicyPage::kWords + 50}, kOff);
  f.policy.set({std::nullopt, 3}, kRead);
  EXPECT_EQ(f.told(members[proto::PolicyPage::kWords + 60]), kOff);
  EXPECT_EQ(f.told(members[3]), kRead);
  EXPECT_EQ(f.told(members[4]), kOn);
  f.policy.leave(members[proto::PolicyPage::kWords + 50], f.now);
  EXPECT_EQ(f.told(members[proto::PolicyPage::kWords + 60]), kOn);
}

TEST(Policy, SettingsAndHistoryOutliveTheDaemon) {
  const Folder folder;
  const std::string file = folder.path / "policy.sqlite";
  {
    Fixture f(machine(1, 4));
    EXPECT_EQ(f.policy.open(file), "");
    EXPECT_EQ(f.policy.set({"prog", 7}, kRead), "");
    EXPECT_EQ(f.policy.set({"gone", std::nullopt}, kOff), "");
    EXPECT_EQ(f.policy.set({}, kOff), "");
    bool found = false;
    EXPECT_EQ(f.policy.unset({"gone", std::nullopt}, found), "");
    auto* member = f.join("prog", 7);
    f.pages.back()->guest_instructions = 1234;
    f.pages.back()->code_bytes = 99;
    f.now += std::chrono::seconds(3);
    f.policy.leave(member, f.now);
  }
  {
    Fixture f(machine(1, 4));
    EXPECT_EQ(f.policy.open(file), "");
    EXPECT_EQ(f.policy.settings().all(), (std::map<PolicyScope, CachePolicy>{{{}, kOff}, {{"prog", 7}, kRead}}));
    const auto* program = f.policy.history().find({"prog", 7});
    ASSERT_NE(program, nullptr);
    EXPECT_EQ(program->instructions, 1234u);
    EXPECT_EQ(program->private_bytes, 99u);
    EXPECT_DOUBLE_EQ(f.policy.history().remaining({"prog", 7}, 0), 3);
  }
  // A file that is something else is put aside, and said.
  std::ofstream(file, std::ios::trunc) << std::string(8192, 'x');
  Fixture f(machine(1, 4));
  EXPECT_NE(f.policy.open(file), "");
  EXPECT_TRUE(std::filesystem::exists(file + ".damaged"));
  EXPECT_TRUE(f.policy.settings().all().empty());
  EXPECT_EQ(f.policy.set({}, kOn), "");
}

TEST(Policy, HitRateIsWhatImagesSpared) {
  Fixture f(machine(1, 4));
  auto* cold = f.join("prog");
  f.pages.back()->guest_instructions = 1000;
  EXPECT_EQ(f.policy.hit_rate(*cold), std::nullopt);
  f.policy.leave(cold, f.now);
  auto* warm = f.join("prog");
  f.pages.back()->guest_instructions = 50;
  EXPECT_DOUBLE_EQ(f.policy.hit_rate(*warm).value(), 0.95);
}

TEST(Policy, ProcessIsSampledFromProc) {
  const auto self = sample_process(getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_GE(self->cpu_seconds, 0);
  EXPECT_LT(self->cpu_seconds, 1e6);
  ASSERT_TRUE(self->cpu.has_value());
  EXPECT_LT(*self->cpu, 4096u);
  EXPECT_FALSE(sample_time(getpid())->cpu.has_value());
  EXPECT_FALSE(sample_process(0).has_value());
  EXPECT_FALSE(sample_process(-5).has_value());
}

// --- what `auto` costs, against `on` and `off` ---

struct Load {
  unsigned nodes, instances;
  bool packed;            // all instances on the node of the image
  double seconds;         // CPU time of an instance when nothing is in its way
  uint64_t instructions;  // that it translates when it shares nothing
  bool copies;            // there is room for a copy of the image on each node
};

constexpr uint64_t kImageBytes = 4 << 20;

// CPU seconds that all instances take, by the cost model, with the policy told by a real Policy whose setting is
// `setting`. `earlier` runs of the program came before.
double total_cost(const Load& load, CachePolicy setting, unsigned earlier) {
  Fixture f(machine(load.nodes, 8));
  f.policy.set({}, setting);
  const CostModel& model = f.policy.model();
  for (unsigned i = 0; i != earlier; ++i) {
    auto* run = f.join("prog");
    f.pages.back()->guest_instructions = load.instructions;
    f.pages.back()->code_bytes = load.instructions * 16;
    f.policy.leave(run,
                   f.now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(load.seconds)));
  }
  struct Instance {
    Policy::Member* member;
    pid_t pid;
    double done = 0;
    bool remote;
    bool translated = false, ended = false;
  };
  double cost = 0;
  std::vector<Instance> instances;
  std::vector<bool> has_copy(load.nodes);
  has_copy[0] = true;
  for (unsigned i = 0; i != load.instances; ++i) {
    const unsigned node = load.packed ? 0 : i % load.nodes;
    // Under `on` the cache is shared naively: one copy for all.
    if (setting == kAuto && !has_copy[node] &&
        worth_copying(model, {kImageBytes, load.instances, 1, load.seconds, load.copies ? kImageBytes * 64 : 0})) {
      has_copy[node] = true;
      cost += kImageBytes / model.copy_rate;
    }
    const bool remote = !has_copy[node];
    Policy::Member* member = f.join("prog", 1, kAuto, remote, node * 8);
    instances.push_back({member, static_cast<pid_t>(f.pages.size()), 0, remote});
  }
  // In two hundred steps, each with as many ticks as make a process be looked at.
  const double step = load.seconds / 200;
  for (unsigned left = load.instances; left != 0;) {
    for (Instance& instance : instances) {
      if (instance.ended) continue;
      double spent = step;
      if (f.told(instance.member) == kOff) {
        if (!instance.translated) cost += static_cast<double>(load.instructions) * model.translation;
        instance.translated = true;
      } else {
        spent *= 1 + remote_loss(model, load.instances, instance.remote);
      }
      cost += spent;
      instance.done += step;
      f.processes[instance.pid].cpu_seconds += spent;
      f.processes[instance.pid].cpu = instance.member->subject.cpu;
      if (instance.done >= load.seconds) {
        instance.ended = true;
        --left;
        f.policy.leave(instance.member, f.now);
      }
    }
    for (unsigned i = 0; i != 4; ++i) f.policy.tick(f.now);
  }
  return cost;
}

std::string describe(const Load& load) {
  char text[160];
  snprintf(text, sizeof text, "%u instances of %g s, %llu instructions, on %u nodes%s%s", load.instances,
           load.seconds, static_cast<unsigned long long>(load.instructions), load.nodes, load.packed ? " packed" : "",
           load.copies ? " with copies" : "");
  return text;
}

std::vector<Load> loads() {
  std::vector<Load> all;
  for (unsigned nodes : {1u, 8u, 16u})
    for (unsigned instances : {1u, 2u, 4u, 8u, 16u})
      for (bool packed : {false, true})
        for (double seconds : {0.05, 1.0, 20.0, 3600.0})
          for (uint64_t instructions : {10'000u, 200'000u, 5'000'000u})
            for (bool copies : {false, true})
              all.push_back({nodes, instances, packed, seconds, instructions, copies});
  return all;
}

TEST(PolicyCost, AutoStaysWithinTwoPercentOfTheBetterOfOnAndOff) {
  for (const Load& load : loads()) {
    const double on = total_cost(load, kOn, 3), off = total_cost(load, kOff, 3), chosen = total_cost(load, kAuto, 3);
    EXPECT_LE(chosen, 1.02 * std::min(on, off)) << describe(load) << ": on " << on << " off " << off;
  }
}

// The case reported from an FT-2000+: 64 cores on 8 nodes, four instances or more, one copy of the image.
TEST(PolicyCost, NaiveSharingOnManyNodesIsTurnedOff) {
  for (unsigned instances : {4u, 8u, 16u}) {
    const Load load{8, instances, false, 3600, 200'000, false};
    const double on = total_cost(load, kOn, 1), off = total_cost(load, kOff, 1);
    EXPECT_GT(on, 1.055 * off) << instances;
    EXPECT_LT(on, 1.08 * off) << instances;
    EXPECT_LE(total_cost(load, kAuto, 1), 1.001 * off) << instances;
  }
  Fixture f(machine(8, 8));
  auto* before = f.join("prog");
  f.pages.back()->guest_instructions = 200'000;
  f.policy.leave(before, f.now + std::chrono::hours(1));
  std::vector<Policy::Member*> members;
  for (unsigned i = 0; i != 4; ++i) members.push_back(f.join("prog", 1, kAuto, i != 0, i * 8));
  EXPECT_EQ(f.told(members[0]), kOn);
  for (unsigned i = 1; i != 4; ++i) EXPECT_EQ(f.told(members[i]), kOff) << i;
  // Who asked for it gets it.
  EXPECT_EQ(f.told(f.join("prog", 1, kOn, true, 32)), kOn);
}

// The first runs of a program that lasts: nothing tells its length beforehand, so it is decided while it runs.
TEST(PolicyCost, WithoutHistoryItIsDecidedAsTheProgramRuns) {
  Fixture f(machine(8, 8));
  auto* before = f.join("prog");
  f.pages.back()->guest_instructions = 1'000'000;  // half a second
  f.policy.leave(before, f.now);
  std::vector<Policy::Member*> members;
  for (unsigned i = 0; i != 4; ++i) members.push_back(f.join("prog", 1, kAuto, true, 8 + i * 8));
  const auto at = [&](double seconds) {
    for (unsigned i = 2; i != 6; ++i) f.processes[static_cast<pid_t>(i)] = {seconds, 8 * (i - 1)};
    for (unsigned i = 0; i != 4; ++i) f.policy.tick(f.now);
    return f.told(members[0]);
  };
  EXPECT_EQ(at(0.1), kOn);
  EXPECT_EQ(at(5), kOn);     // remote fetches have cost 0.4 s
  EXPECT_EQ(at(7), kOff);    // 0.56 s
  EXPECT_EQ(at(0.1), kOff);  // paid for
}

TEST(PolicyCost, DecisionsOfTheModel) {
  const CostModel model;
  SharingLoad load;
  load.instances = 8;
  load.remote = true;
  load.remaining = 1000;
  load.instructions = 100'000;
  load.private_bytes = 10 << 20;
  load.memory_available = uint64_t{8} << 30;
  EXPECT_EQ(decide_sharing(model, load).value, kOff);
  SharingLoad other = load;
  other.remote = false;
  EXPECT_EQ(decide_sharing(model, other).value, kOn);
  other = load;
  other.instances = 1;
  EXPECT_EQ(decide_sharing(model, other).value, kOn);
  other = load;
  other.instructions = 0;
  EXPECT_EQ(decide_sharing(model, other).value, kOn);
  other = load;
  other.remaining = 0.1;
  EXPECT_EQ(decide_sharing(model, other).value, kOn);
  other = load;
  other.memory_available = 100 << 20;  // eight times 10 MiB do not fit into a quarter
  EXPECT_EQ(decide_sharing(model, other).value, kOn);
  other = load;
  other.remote = false;
  other.compile_seconds = 100;
  EXPECT_EQ(decide_sharing(model, other).value, kRead);
  other.saved_seconds = 50;
  EXPECT_EQ(decide_sharing(model, other).value, kOn);
}

// Programs that are made anew for each run, as those of configure scripts: their images are never used again.
TEST(PolicyCost, ImagesThatNobodyUsesAreNotMadeForEver) {
  Fixture f(machine(1, 4));
  const auto run = [&](uint64_t instructions) {
    auto* member = f.join("conftest");
    f.pages.back()->guest_instructions = instructions;
    const CachePolicy told = f.told(member);
    f.policy.leave(member, f.now);
    f.pages.pop_back();
    return told;
  };
  for (unsigned i = 0; i != 60; ++i) {
    EXPECT_EQ(run(50'000), kOn) << i;
    f.policy.note_compile("conftest", 1, 1.01);
  }
  EXPECT_EQ(run(50'000), kRead);
  EXPECT_EQ(f.told(f.join("conftest", 2)), kOn);
  EXPECT_EQ(f.told(f.join("other")), kOn);
  // It is tried again when that is long ago.
  for (unsigned i = 0; i != 3600; ++i) f.policy.tick(f.now);
  EXPECT_EQ(run(50'000), kOn);
  // A program whose images are used: each run saves 25 ms.
  for (unsigned i = 0; i != 100; ++i) f.policy.note_compile("conftest", 1, 1);
  EXPECT_EQ(run(50'000), kRead);
  for (unsigned i = 0; i != 3800; ++i) run(1'000);
  EXPECT_EQ(run(1'000), kOn);
}

TEST(PolicyCost, CopiesAreMadeWhereTheySave) {
  const CostModel model;
  const CopyLoad load{4 << 20, 4, 1, 100, 64 << 20};
  EXPECT_TRUE(worth_copying(model, load));
  CopyLoad other = load;
  other.room = 1 << 20;
  EXPECT_FALSE(worth_copying(model, other));
  other = load;
  other.here = 0;
  EXPECT_FALSE(worth_copying(model, other));
  other = load;
  other.instances = 1;
  EXPECT_FALSE(worth_copying(model, other));
  other = load;
  other.seconds = 0.01;
  EXPECT_FALSE(worth_copying(model, other));
}

}  // namespace
}  // namespace phybin::daemon
