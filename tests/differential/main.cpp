// difftest: differential tests of the translator, one instruction or a short sequence at a time. The oracle is the
// CPU of the machine that runs this program, or its recorded results.
#include <regex.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "tests/differential/flag_pairs.h"
#include "tests/differential/options.h"
#include "tests/differential/recording.h"
#include "tests/differential/reduce.h"

namespace phybin::difftest {
namespace {

constexpr size_t kBatchCases = 8192;
constexpr unsigned kInjectEvery = 97;
constexpr unsigned kStaleNamed = 20;  // units that do not fit the recording, named in the output

class Harness {
 public:
  explicit Harness(const Options& options) : options_(options) {}
  ~Harness() { regfree(&pattern_); }
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;
  int run();

 private:
  bool matches(const std::string& name) const { return regexec(&pattern_, name.c_str(), 0, nullptr, 0) == 0; }
  void select_forms();
  void list() const;
  void probe(const Machine& machine, const char* what) const;
  void test_all();
  void replay();
  void add(Unit unit, const RecordedUnit* recorded);
  void does_not_fit(const std::string& name, const char* why);
  void flush();
  void check(const Case& item, const Outcome& expected, const Outcome& actual);
  void report(const Case& item, const Outcome& expected, const Outcome& actual);
  int finish();
  // Of a form, which is told from a random sequence and a flag pair by being alone.
  static bool is_single(const Snippet& snippet) { return snippet.main >= 0 && snippet.name.empty(); }
  std::string name_of(const Case& item) const {
    if (!item.snippet->name.empty()) return item.snippet->name;
    return item.snippet->main >= 0 ? item.snippet->code[size_t(item.snippet->main)].form->name : "sequence";
  }

  Options options_;
  regex_t pattern_{};
  std::vector<const Form*> forms_;
  Machine oracle_, tested_;
  std::vector<Unit> units_;  // of this batch
  size_t batch_cases_ = 0;
  std::vector<Outcome> recorded_;             // of their cases, in a replay
  std::map<std::string, unsigned> failures_;  // by form
  std::map<const Snippet*, bool> reported_;
  uint64_t passed_ = 0, failed_ = 0, skipped_ = 0, dropped_ = 0, faulted_ = 0, done_ = 0, stale_ = 0;
  unsigned reports_ = 0;
  Recording recording_;
};

void Harness::select_forms() {
  if (regcomp(&pattern_, options_.form_pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    std::fprintf(stderr, "difftest: --form: bad regular expression\n");
    std::exit(2);
  }
  // A recording is for machines whose own tests are done with any CPU.
  const bool recorded = !options_.record.empty() || !options_.replay.empty();
  const bool all = std::find(options_.groups.begin(), options_.groups.end(), "all") != options_.groups.end();
  for (const Form& form : all_forms(recorded ? Vendors::kAny : oracle_vendor())) {
    const bool chosen = all || (options_.groups.empty() ? group_is_default(form.group)
                                                        : std::find(options_.groups.begin(), options_.groups.end(),
                                                                    form.group) != options_.groups.end());
    if (form.group == "fault" && !options_.units.faults) continue;
    if (chosen && (matches(form.name) || !options_.replay.empty())) forms_.push_back(&form);
  }
  if (forms_.empty()) {
    std::fprintf(stderr, "difftest: no form of that group and name\n");
    std::exit(2);
  }
  std::set<std::string> names;
  for (const Form* form : forms_) {
    if (names.insert(unit_name(*form)).second) continue;
    std::fprintf(stderr, "difftest: %s stands twice in the tables\n", unit_name(*form).c_str());
    std::exit(2);
  }
}

void Harness::list() const {
  std::string group;
  for (const Form* form : forms_) {
    if (form->group != group) {
      group = form->group;
      std::printf("%s%s\n", group.c_str(), group_is_default(group) ? "" : " (only with --group)");
    }
    std::printf("  %s\n", form->name.c_str());
  }
  std::printf("%zu forms\n", forms_.size());
}

// Without this every case would be reported when the program under test does not start at all.
void Harness::probe(const Machine& machine, const char* what) const {
  Snippet empty;
  Case item;
  item.snippet = &empty;
  item.state.mxcsr = 0x1f80;
  item.state.flags = 2;
  const Outcome outcome = run_cases(machine, {item}, false)[0];
  if (outcome.kind == Outcome::kDone) return;
  std::fprintf(stderr, "difftest: %s does not run an empty case\n%s", what,
               describe_difference(item, outcome, outcome, options_.compare).c_str());
  std::exit(2);
}

// `recorded` is null where the oracle is run.
void Harness::add(Unit unit, const RecordedUnit* recorded) {
  if (recorded) {
    // Behind another batch's end the addresses begin anew.
    if (!units_.empty() && unit.cases[0].address < units_.back().cases.back().address) flush();
    for (size_t i = 0; i < unit.cases.size(); i++) {
      recorded_.push_back(recorded_outcome(unit.cases[i], recorded->results[i], options_.compare));
    }
  }
  batch_cases_ += unit.cases.size();
  units_.push_back(std::move(unit));
  if (!recorded && batch_cases_ >= kBatchCases) flush();
}

void Harness::report(const Case& item, const Outcome& expected, const Outcome& actual) {
  if (reports_ >= options_.reports) return;
  // One report for each snippet, and two for each form.
  if (reported_[item.snippet] || (is_single(*item.snippet) && failures_[name_of(item)] > 2)) return;
  reported_[item.snippet] = true;
  reports_++;
  const bool live = options_.replay.empty() && !options_.inject_fault;
  Case shown = item;
  Snippet reduced;
  if (!is_single(*item.snippet) && options_.replay.empty()) {
    shown.address = 0;
    reduced = reduce(shown, oracle_, tested_, options_.compare);
    shown.snippet = &reduced;
  }
  std::string difference;
  if (live) {
    difference = describe_difference(shown, run_cases(oracle_, {shown}, true)[0],
                                     run_cases(tested_, {shown}, true)[0], options_.compare);
  } else {
    difference = describe_difference(shown, expected, actual, options_.compare);
  }
  std::vector<uint8_t> code;
  const uint64_t address = place_cases({shown}, code)[0];
  std::string title = name_of(item);
  if (item.snippet->main < 0) title += " " + std::to_string(item.snippet->number);
  std::printf("FAILED %s (seed %llu)\n%s%s\n", title.c_str(), static_cast<unsigned long long>(options_.units.seed),
              describe_case(shown, address).c_str(), difference.c_str());
  std::fflush(stdout);
}

void Harness::check(const Case& item, const Outcome& expected, const Outcome& actual) {
  if (expected.kind != Outcome::kDone) {
    dropped_++;
    return;
  }
  if (expected.result.signal != 0) faulted_++;
  if (actual.kind == Outcome::kDone && same_result(item, expected.result, actual.result, options_.compare)) {
    passed_++;
    return;
  }
  failed_++;
  failures_[name_of(item)]++;
  if (actual.kind == Outcome::kSkipped) {
    skipped_++;
    return;
  }
  report(item, expected, actual);
}

// Runs the batch.
void Harness::flush() {
  std::vector<Case> cases;
  for (const Unit& unit : units_) cases.insert(cases.end(), unit.cases.begin(), unit.cases.end());
  if (cases.empty()) return;
  std::vector<Outcome> expected = std::move(recorded_), actual;
  if (options_.replay.empty()) {
    std::vector<uint8_t> code;
    const std::vector<uint64_t> addresses = place_cases(cases, code);
    for (size_t i = 0; i < cases.size(); i++) cases[i].address = addresses[i];
    expected = run_cases(oracle_, cases, false);
  }
  if (!options_.record.empty()) {
    size_t first = 0;
    for (Unit& unit : units_) {
      const size_t end = first + unit.cases.size();
      for (size_t i = first; i < end; i++) unit.cases[i - first].address = cases[i].address;
      recording_.units.push_back(
          record_unit(unit, {expected.begin() + long(first), expected.begin() + long(end)}, options_.compare));
      first = end;
    }
  }
  if (options_.oracle_vs_oracle || !options_.translator.empty()) actual = run_cases(tested_, cases, false);
  for (size_t i = 0; i < actual.size(); i++) {
    if (options_.inject_fault && i % kInjectEvery == 0) actual[i].result.gpr[i % 16] ^= uint64_t(1) << (i % 64);
    check(cases[i], expected[i], actual[i]);
  }
  done_ += cases.size();
  if (!options_.quiet) {
    std::fprintf(stderr, "%llu cases, %llu failed\n", static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(failed_));
  }
  recorded_.clear();
  reported_.clear();
  units_.clear();
  batch_cases_ = 0;
}

void Harness::test_all() {
  if (options_.singles) {
    for (const Form* form : forms_) add(form_unit(*form, options_.units), nullptr);
  }
  if (options_.flag_pairs) {
    const std::vector<FlagProducer> producers = flag_producers(forms_);
    for (const FlagProducer& producer : producers) {
      add(flag_pair_unit(producer, options_.flag_pairs, options_.units), nullptr);
    }
    std::printf("%zu flag producers\n", producers.size());
  }
  for (unsigned i = 0; i < options_.sequences; i++) add(sequence_unit(forms_, i, options_.units), nullptr);
  flush();
}

void Harness::does_not_fit(const std::string& name, const char* why) {
  if (stale_++ < kStaleNamed) std::printf("%s: %s\n", name.c_str(), why);
  failed_++;
}

// Runs what the recording holds. Sequences were made of its forms, whatever has been added since.
void Harness::replay() {
  std::printf("recorded on: %s\n", recording_.cpu.c_str());
  std::map<std::string, const Form*> known;
  for (const Form* form : forms_) known[unit_name(*form)] = form;
  std::set<std::string> names;
  for (const RecordedUnit& unit : recording_.units) names.insert(unit.name);
  for (const auto& [name, form] : known) {
    if (matches(form->name) && !names.contains(name)) does_not_fit(name, "not recorded");
  }
  std::vector<const Form*> recorded_forms;
  const size_t forms = recording_.units.size() - std::min<size_t>(recording_.sequences, recording_.units.size());
  for (size_t i = 0; i < recording_.units.size(); i++) {
    const RecordedUnit& recorded = recording_.units[i];
    const bool is_form = i < forms;
    const Form* form = nullptr;
    if (is_form) {
      if (const auto found = known.find(recorded.name); found != known.end()) form = found->second;
      if (form) recorded_forms.push_back(form);
    }
    if (i % options_.every != 0 || !matches(form ? form->name : recorded.name)) continue;
    if (is_form && !form) {
      does_not_fit(recorded.name, "recorded, but there is no such form");
      continue;
    }
    Unit unit = is_form ? form_unit(*form, options_.units)
                        : sequence_unit(recorded_forms, unsigned(i - forms), options_.units);
    if (!take_addresses(unit, recorded) || digest_of_cases(unit) != recorded.digest) {
      does_not_fit(recorded.name, "its cases are others since it was recorded");
    } else if (options_.translator.empty()) {
      passed_++;
    } else {
      add(std::move(unit), &recorded);
    }
  }
  flush();
  if (stale_ > kStaleNamed) std::printf("and %llu more\n", static_cast<unsigned long long>(stale_ - kStaleNamed));
  if (stale_) {
    std::printf(
        "The recorded results are of other tests than these. On an x86_64 machine, tests/differential/record\n"
        "records them anew (docs/testing.md, \"Recorded results\").\n");
  }
}

std::vector<std::string> split_command(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  for (char c : command + ' ') {
    if (c != ' ') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

int Harness::finish() {
  if (!options_.record.empty()) {
    recording_.cpu = this_cpu();
    recording_.options = options_.units;
    recording_.compare = options_.compare;
    recording_.sequences = options_.sequences;
    if (const std::string problem = write_recording(options_.record, recording_); !problem.empty()) {
      std::fprintf(stderr, "difftest: %s\n", problem.c_str());
      return 2;
    }
    std::printf("%zu forms and sequences recorded\n", recording_.units.size());
    if (options_.translator.empty() && !options_.oracle_vs_oracle) return 0;
  }
  for (const auto& [name, count] : failures_) std::printf("%6u failures in %s\n", count, name.c_str());
  if (faulted_) std::printf("%llu cases with a signal\n", static_cast<unsigned long long>(faulted_));
  if (skipped_) {
    std::printf("%llu of the failures not run: their like died before\n", static_cast<unsigned long long>(skipped_));
  }
  if (dropped_) {
    std::printf("%llu cases left out: the oracle faults on them\n", static_cast<unsigned long long>(dropped_));
  }
  if (passed_ + failed_ == 0) {
    std::fprintf(stderr, "difftest: nothing that was chosen makes a case\n");
    return 2;
  }
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed_),
              static_cast<unsigned long long>(failed_));
  return failed_ ? 1 : 0;
}

int Harness::run() {
  if (!options_.replay.empty()) {
    if (const std::string problem = read_recording(options_.replay, recording_); !problem.empty()) {
      std::fprintf(stderr, "difftest: %s\n", problem.c_str());
      return 2;
    }
    options_.units = recording_.options;
    options_.compare = recording_.compare;
  }
  select_forms();
  if (options_.list) {
    list();
    return 0;
  }
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  char directory[] = "/tmp/difftest-XXXXXX";
  if (!mkdtemp(directory)) {
    std::perror("difftest: mkdtemp");
    return 2;
  }
  oracle_ = {{}, options_.runner, directory, options_.units.faults};
  tested_ = {split_command(options_.translator), options_.runner, directory, options_.units.faults};
  if (options_.replay.empty()) probe(oracle_, "this machine");
  if (!options_.translator.empty()) probe(tested_, "the translator");
  if (options_.replay.empty()) {
    test_all();
  } else {
    replay();
  }
  for (const char* name : {"/batch", "/results", "/messages"}) unlink((directory + std::string(name)).c_str());
  rmdir(directory);
  return finish();
}

}  // namespace
}  // namespace phybin::difftest

int main(int argc, char** argv) {
  const phybin::difftest::Options options = phybin::difftest::parse_options(argc, argv);
  return phybin::difftest::Harness(options).run();
}
