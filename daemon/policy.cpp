// See policy.h.
#include "daemon/policy.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "daemon/log.h"

namespace phybin::daemon {
namespace {

using proto::CachePolicy;

// The word of all classes for which there is no other: what the least sharing one of them is allowed.
constexpr uint32_t kOverflowWord = 0;
// A process is looked at every so many ticks.
constexpr uint64_t kSampleTicks = 4;
// History is saved every so many.
constexpr uint64_t kSaveTicks = 60;
// What images cost and saved counts half after so many.
constexpr uint64_t kForgetTicks = 3600;
constexpr size_t kMaxBalances = 4096;

// MemAvailable in bytes; 0 if unknown.
uint64_t read_memory_available() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    unsigned long long kilobytes = 0;
    if (sscanf(line.c_str(), "MemAvailable: %llu kB", &kilobytes) == 1) return kilobytes << 10;
  }
  return 0;
}

double seconds_between(Policy::Clock::time_point from, Policy::Clock::time_point to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

uint64_t load(const std::atomic<uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

}  // namespace

std::optional<ProcessSample> sample_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (pid <= 0 || !std::getline(file, line)) return std::nullopt;
  // The name, in parentheses, may hold anything; the fields behind it are numbers: the first one is field 3.
  const size_t name_end = line.rfind(')');
  if (name_end == line.npos) return std::nullopt;
  constexpr int kUserTime = 14, kSystemTime = 15, kProcessor = 39;
  ProcessSample sample;
  unsigned long long ticks = 0;
  int field = 2;
  const char* at = line.c_str() + name_end + 1;
  for (; *at == ' '; at += strcspn(at, " ")) {
    ++at;
    ++field;
    if (field == kUserTime || field == kSystemTime) ticks += strtoull(at, nullptr, 10);
    if (field == kProcessor) {
      sample.cpu = static_cast<unsigned>(strtoul(at, nullptr, 10));
      break;
    }
  }
  if (field != kProcessor) return std::nullopt;
  sample.cpu_seconds = static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return sample;
}

std::optional<ProcessSample> sample_time(pid_t pid) {
  std::optional<ProcessSample> sample = sample_process(pid);
  if (sample) sample->cpu.reset();
  return sample;
}

Policy::Policy(proto::PolicyPage& page, Topology topology, Sampler sampler)
    : page_(page), topology_(std::move(topology)), sampler_(std::move(sampler)) {
  for (uint32_t word = 0; word != proto::PolicyPage::kWords; ++word) {
    page_.words[word].store(static_cast<uint32_t>(CachePolicy::kOn), std::memory_order_relaxed);
    if (word != kOverflowWord) free_words_.push_back(word);
  }
}

Policy::~Policy() { save(); }

std::string Policy::open(const std::string& file) { return store_.open(file, settings_, history_); }

// A word is used again as late as possible: a worker that has lost the daemon goes on reading its own.
uint32_t Policy::take_word() {
  if (free_words_.empty()) return kOverflowWord;
  const uint32_t word = free_words_.front();
  free_words_.pop_front();
  return word;
}

void Policy::release_word(uint32_t word) {
  if (word != kOverflowWord) free_words_.push_back(word);
}

void Policy::store_overflow() {
  CachePolicy least = CachePolicy::kOn;
  for (const auto& [key, group] : classes_) {
    if (group.word == kOverflowWord) least = std::min(least, group.value);
  }
  page_.words[kOverflowWord].store(static_cast<uint32_t>(least), std::memory_order_release);
}

void Policy::publish(Class& group, CachePolicy value) {
  group.value = value;
  if (group.word == kOverflowWord) {
    store_overflow();
  } else {
    page_.words[group.word].store(static_cast<uint32_t>(value), std::memory_order_release);
  }
}

SharingLoad Policy::measure(const Class& group) const {
  SharingLoad load_now;
  load_now.remote = group.remote;
  load_now.instances = instances(group.program);
  const RunHistory::Key key{group.program, group.uid};
  for (const Member* member : group.members) load_now.remaining += history_.remaining(key, member->cpu_seconds);
  if (!group.members.empty()) load_now.remaining /= static_cast<double>(group.members.size());
  if (const RunHistory::Program* program = history_.find(key)) {
    load_now.instructions = program->instructions;
    load_now.private_bytes = program->private_bytes;
  }
  if (const auto balance = balances_.find(key); balance != balances_.end()) {
    load_now.compile_seconds = balance->second.compiled;
    load_now.saved_seconds = balance->second.saved;
  }
  load_now.memory_available = memory_available_;
  return load_now;
}

void Policy::decide(Class& group) {
  const CachePolicy allowed = combine(group.wanted, settings_.resolve(group.program, group.uid));
  if (allowed != CachePolicy::kAuto) {
    group.automatic = false;
    group.reason = group.wanted == allowed ? "asked for by the program's option" : "set";
    return publish(group, allowed);
  }
  // Programs that went over to private translations have paid for them: going back would only add costs.
  if (group.automatic && group.value == CachePolicy::kOff) return;
  const SharingVerdict verdict = decide_sharing(model_, measure(group));
  if (group.automatic && group.value != verdict.value) {
    log(LogLevel::kInfo, "policy of " + printable(group.program) + " of user " + std::to_string(group.uid) + ": " +
                             policy_name(verdict.value) + " (" + verdict.reason + ")");
  }
  group.automatic = true;
  group.reason = verdict.reason;
  publish(group, verdict.value);
}

Policy::Member* Policy::join(const PolicySubject& subject, pid_t pid, const proto::WorkerPage* page, bool remote,
                             Clock::time_point now) {
  auto owned = std::make_unique<Member>();
  Member* member = owned.get();
  member->subject = subject;
  member->pid = pid;
  member->page = page;
  member->node = topology_.node_of(subject.cpu);
  member->remote = remote;
  member->joined = member->sampled = now;
  const auto [place, is_new] = classes_.try_emplace({subject.program, subject.uid, subject.wanted, remote});
  Class& group = place->second;
  if (is_new) {
    group.program = subject.program;
    group.uid = subject.uid;
    group.wanted = subject.wanted;
    group.remote = remote;
    group.word = take_word();
  }
  member->group = &group;
  group.members.insert(member);
  ++instances_[subject.program];
  members_.insert(std::move(owned));
  decide(group);
  return member;
}

void Policy::leave(Member* member, Clock::time_point now) {
  // The process may be gone; since it was last looked at it cannot have used much more than the time that passed.
  Run run;
  run.seconds = member->cpu_seconds + seconds_between(member->sampled, now);
  if (member->page != nullptr) {
    run.instructions = load(member->page->guest_instructions);
    run.private_bytes = load(member->page->code_bytes);
    counted_.add(*member->page);
  }
  note_saved(*member, run);
  history_.add({member->subject.program, member->subject.uid}, run);
  Class& group = *member->group;
  group.members.erase(member);
  if (auto count = instances_.find(group.program); --count->second == 0) instances_.erase(count);
  if (group.members.empty()) {
    release_word(group.word);
    const bool overflow = group.word == kOverflowWord;
    classes_.erase({group.program, group.uid, group.wanted, group.remote});
    if (overflow) store_overflow();
  }
  std::erase_if(members_, [member](const auto& owned) { return owned.get() == member; });
}

void Policy::note_compile(const std::string& program, uint32_t uid, double seconds) {
  const RunHistory::Key key{program, uid};
  if (balances_.size() < kMaxBalances || balances_.count(key) != 0) balances_[key].compiled += seconds;
}

// What the run did not translate itself, of what a run without images does. Only of programs whose images cost
// something: the others need no balance.
void Policy::note_saved(const Member& member, const Run& run) {
  const RunHistory::Key key{member.subject.program, member.subject.uid};
  const auto balance = balances_.find(key);
  const RunHistory::Program* program = history_.find(key);
  if (balance == balances_.end() || program == nullptr || program->instructions <= run.instructions) return;
  balance->second.saved += static_cast<double>(program->instructions - run.instructions) * model_.translation;
}

void Policy::forget_balances() {
  for (auto& [key, balance] : balances_) {
    balance.compiled /= 2;
    balance.saved /= 2;
  }
  std::erase_if(balances_, [](const auto& each) { return each.second.compiled < 1; });
}

void Policy::Counted::add(const proto::WorkerPage& page) {
  guest_instructions += std::min(load(page.guest_instructions), kMostOfWorker);
  regions += std::min(load(page.regions), kMostOfWorker);
  image_links += std::min(load(page.image_links), kMostOfWorker);
}

void Policy::sample(Member& member, Clock::time_point now) {
  if (const std::optional<ProcessSample> sample = sampler_(member.pid)) {
    member.cpu_seconds = sample->cpu_seconds;
    if (sample->cpu) member.node = topology_.node_of(*sample->cpu);
  } else {
    member.cpu_seconds += seconds_between(member.sampled, now);
  }
  member.sampled = now;
}

void Policy::tick(Clock::time_point now) {
  if (++ticks_ % kSampleTicks == 0) memory_available_ = read_memory_available();
  for (const auto& member : members_) {
    if (static_cast<uint64_t>(member->pid) % kSampleTicks == ticks_ % kSampleTicks) sample(*member, now);
  }
  for (auto& [key, group] : classes_) decide(group);
  if (ticks_ % kSaveTicks == 0) save();
  if (ticks_ % kForgetTicks == 0) forget_balances();
}

void Policy::save() {
  if (const std::string problem = store_.save(history_); !problem.empty()) {
    log(LogLevel::kWarning, "history of programs is not saved: " + problem);
  }
}

std::string Policy::set(const PolicyScope& scope, CachePolicy value) {
  settings_.set(scope, value);
  for (auto& [key, group] : classes_) {
    group.automatic = false;
    decide(group);
  }
  return store_.set(scope, value);
}

std::string Policy::unset(const PolicyScope& scope, bool& found) {
  found = settings_.unset(scope);
  for (auto& [key, group] : classes_) {
    group.automatic = false;
    decide(group);
  }
  return store_.unset(scope);
}

unsigned Policy::instances(const std::string& program) const {
  const auto found = instances_.find(program);
  return found == instances_.end() ? 0 : found->second;
}

uint64_t Policy::nodes_of(const std::string& program) const {
  uint64_t nodes = 0;
  for (const auto& [key, group] : classes_) {
    if (group.program != program) continue;
    for (const Member* member : group.members) nodes |= uint64_t{1} << (member->node % 64);
  }
  return nodes;
}

std::optional<double> Policy::hit_rate(const Member& member) const {
  const RunHistory::Program* program = history_.find({member.subject.program, member.subject.uid});
  if (program == nullptr || program->instructions == 0 || member.page == nullptr) return std::nullopt;
  const auto own = static_cast<double>(load(member.page->guest_instructions));
  return std::clamp(1 - own / static_cast<double>(program->instructions), 0.0, 1.0);
}

}  // namespace phybin::daemon
