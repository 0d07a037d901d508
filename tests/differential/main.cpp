// difftest: differential tests of the translator, one instruction or a short sequence at a time. The oracle is the
// CPU of the machine that runs this program, or its recorded results.
#include <regex.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#include "tests/differential/options.h"
#include "tests/differential/reduce.h"

namespace phybin::difftest {
namespace {

constexpr size_t kBatchCases = 8192;
constexpr unsigned kSequenceStates = 4;
constexpr unsigned kInjectEvery = 97;
constexpr char kRecordMagic[8] = {'P', 'B', 'D', 'I', 'F', 'F', '1', '\n'};

class Harness {
 public:
  explicit Harness(const Options& options) : options_(options) {}
  int run();

 private:
  void select_forms();
  void list() const;
  void probe(const Machine& machine, const char* what) const;
  void add_form(const Form& form);
  void add_sequence(unsigned number);
  void add_case(const Snippet* snippet, Random& random);
  void flush();
  void check(size_t index, const Outcome* expected, uint32_t digest, const Outcome& actual);
  void report(const Case& item, const Outcome& actual);
  void open_record();
  uint64_t plan_hash() const;
  std::string name_of(const Case& item) const {
    return item.snippet->main >= 0 ? item.snippet->code[size_t(item.snippet->main)].form->name : "sequence";
  }

  const Options& options_;
  std::vector<const Form*> forms_;
  Machine oracle_, tested_;
  std::deque<Snippet> snippets_;
  std::vector<Case> cases_;
  std::map<std::string, unsigned> failures_;  // by form
  std::map<const Snippet*, bool> reported_;
  uint64_t passed_ = 0, failed_ = 0, skipped_ = 0, dropped_ = 0, faulted_ = 0, done_ = 0;
  unsigned reports_ = 0;
  std::vector<uint32_t> recorded_;
  size_t replayed_ = 0;
};

void Harness::select_forms() {
  regex_t pattern;
  if (regcomp(&pattern, options_.form_pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    std::fprintf(stderr, "difftest: --form: bad regular expression\n");
    std::exit(2);
  }
  const bool all = std::find(options_.groups.begin(), options_.groups.end(), "all") != options_.groups.end();
  for (const Form& form : all_forms()) {
    const bool chosen = all || (options_.groups.empty() ? group_is_default(form.group)
                                                        : std::find(options_.groups.begin(), options_.groups.end(),
                                                                    form.group) != options_.groups.end());
    if (form.group == "fault" && !options_.faults) continue;
    if (chosen && regexec(&pattern, form.name.c_str(), 0, nullptr, 0) == 0) forms_.push_back(&form);
  }
  regfree(&pattern);
  if (forms_.empty()) {
    std::fprintf(stderr, "difftest: no form of that group and name\n");
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

void Harness::add_case(const Snippet* snippet, Random& random) {
  Case item;
  item.snippet = snippet;
  item.state = make_state(*snippet, options_.state, random);
  cases_.push_back(item);
}

void Harness::add_form(const Form& form) {
  const unsigned states = options_.count >= 256 ? 16 : std::min(options_.count, 6u);
  const unsigned variants = std::max(1u, options_.count / states);
  const uint64_t hash = hash_text(form.name) ^ form.opcode.back() ^ hash_text(form.group);
  for (unsigned variant = 0; variant < variants; variant++) {
    Random random{options_.seed, hash, variant};
    snippets_.push_back(build_single(form, options_.faults, random));
    for (unsigned state = 0; state < states; state++) {
      Random state_random{options_.seed, hash, variant, state + 1};
      add_case(&snippets_.back(), state_random);
    }
  }
  if (cases_.size() >= kBatchCases) flush();
}

void Harness::add_sequence(unsigned number) {
  Random random{options_.seed, hash_text("sequence"), number};
  snippets_.push_back(build_sequence(forms_, options_.faults, random));
  snippets_.back().number = number;
  for (unsigned state = 0; state < kSequenceStates; state++) {
    Random state_random{options_.seed, hash_text("sequence"), number, state + 1};
    add_case(&snippets_.back(), state_random);
  }
  if (cases_.size() >= kBatchCases) flush();
}

void Harness::report(const Case& item, const Outcome& actual) {
  if (reports_ >= options_.reports) return;
  // One report for each snippet, and two for each form.
  if (reported_[item.snippet] || (item.snippet->main >= 0 && failures_[name_of(item)] > 2)) return;
  reported_[item.snippet] = true;
  reports_++;
  Case shown = item;
  Snippet reduced;
  if (item.snippet->main < 0 && options_.replay.empty()) {
    reduced = reduce(item, oracle_, tested_, options_.compare);
    shown.snippet = &reduced;
  }
  std::vector<uint8_t> code;
  const uint64_t address = place_cases({shown}, code)[0];
  std::string difference;
  if (options_.replay.empty() && !options_.inject_fault) {
    const Outcome expected = run_cases(oracle_, {shown}, true)[0];
    difference = describe_difference(shown, expected, run_cases(tested_, {shown}, true)[0], options_.compare);
  } else if (actual.kind != Outcome::kDone) {
    difference = describe_difference(shown, actual, actual, options_.compare);
  } else {
    difference = "    another result than the oracle's\n";
  }
  std::string title = name_of(item);
  if (item.snippet->main < 0) title += " " + std::to_string(item.snippet->number);
  std::printf("FAILED %s (seed %llu)\n%s%s\n", title.c_str(), static_cast<unsigned long long>(options_.seed),
              describe_case(shown, address).c_str(), difference.c_str());
  std::fflush(stdout);
}

// `expected` is null in a replay, where only the digest is known.
void Harness::check(size_t index, const Outcome* expected, uint32_t digest, const Outcome& actual) {
  const Case& item = cases_[index];
  if (expected ? expected->kind != Outcome::kDone : digest == 0) {
    dropped_++;
    return;
  }
  bool same = actual.kind == Outcome::kDone;
  if (same) {
    same = expected ? same_result(item, expected->result, actual.result, options_.compare)
                    : result_digest(item, actual.result, options_.compare) == digest;
  }
  if (expected && expected->result.signal != 0) faulted_++;
  if (same) {
    passed_++;
    return;
  }
  failed_++;
  failures_[name_of(item)]++;
  if (actual.kind == Outcome::kSkipped) {
    skipped_++;
    return;
  }
  report(item, actual);
}

void Harness::flush() {
  if (cases_.empty()) return;
  std::vector<Outcome> expected, actual;
  if (options_.replay.empty()) expected = run_cases(oracle_, cases_, false);
  if (!options_.record.empty()) {
    for (size_t i = 0; i < cases_.size(); i++) {
      const bool done = expected[i].kind == Outcome::kDone;
      recorded_.push_back(done ? result_digest(cases_[i], expected[i].result, options_.compare) : 0);
    }
  }
  if (options_.oracle_vs_oracle || !options_.translator.empty()) actual = run_cases(tested_, cases_, false);
  for (size_t i = 0; i < actual.size(); i++) {
    if (options_.inject_fault && i % kInjectEvery == 0) actual[i].result.gpr[i % 16] ^= uint64_t(1) << (i % 64);
    uint32_t digest = 0;
    if (!options_.replay.empty()) {
      if (replayed_ >= recorded_.size()) {
        std::fprintf(stderr, "difftest: %s ends too early\n", options_.replay.c_str());
        std::exit(2);
      }
      digest = recorded_[replayed_++];
    }
    check(i, options_.replay.empty() ? &expected[i] : nullptr, digest, actual[i]);
  }
  done_ += cases_.size();
  if (!options_.quiet) {
    std::fprintf(stderr, "%llu cases, %llu failed\n", static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(failed_));
  }
  cases_.clear();
  reported_.clear();
  snippets_.clear();
}

uint64_t Harness::plan_hash() const {
  std::string text = std::to_string(options_.seed) + ' ' + std::to_string(options_.count) + ' ' +
                     std::to_string(options_.sequences) + ' ' + std::to_string(options_.faults) +
                     std::to_string(options_.singles) + std::to_string(options_.state.rounding) +
                     std::to_string(options_.state.ftz) + std::to_string(options_.state.precision) +
                     std::to_string(options_.compare.mxcsr_flags) + std::to_string(options_.compare.nan_payload) +
                     std::to_string(options_.compare.x87_status) + std::to_string(options_.compare.fault_progress);
  for (const Form* form : forms_) text += ' ' + form->name;
  return hash_text(text);
}

void Harness::open_record() {
  if (options_.replay.empty()) return;
  std::FILE* file = std::fopen(options_.replay.c_str(), "rb");
  char magic[8] = {};
  uint64_t hash = 0;
  if (!file || std::fread(magic, 8, 1, file) != 1 || std::memcmp(magic, kRecordMagic, 8) != 0 ||
      std::fread(&hash, 8, 1, file) != 1) {
    std::fprintf(stderr, "difftest: %s is no recording\n", options_.replay.c_str());
    std::exit(2);
  }
  if (hash != plan_hash()) {
    std::fprintf(stderr, "difftest: %s was recorded with other options or forms\n", options_.replay.c_str());
    std::exit(2);
  }
  uint32_t digest;
  while (std::fread(&digest, 4, 1, file) == 1) recorded_.push_back(digest);
  std::fclose(file);
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

int Harness::run() {
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
  oracle_ = {{}, options_.runner, directory, options_.faults};
  tested_ = {split_command(options_.translator), options_.runner, directory, options_.faults};
  if (options_.replay.empty()) probe(oracle_, "this machine");
  if (!options_.translator.empty()) probe(tested_, "the translator");
  open_record();
  if (options_.singles) {
    for (const Form* form : forms_) add_form(*form);
  }
  for (unsigned i = 0; i < options_.sequences; i++) add_sequence(i);
  flush();
  for (const char* name : {"/batch", "/results", "/messages"}) unlink((directory + std::string(name)).c_str());
  rmdir(directory);
  if (!options_.record.empty()) {
    std::FILE* file = std::fopen(options_.record.c_str(), "wb");
    const uint64_t hash = plan_hash();
    if (!file || std::fwrite(kRecordMagic, 8, 1, file) != 1 || std::fwrite(&hash, 8, 1, file) != 1 ||
        std::fwrite(recorded_.data(), 4, recorded_.size(), file) != recorded_.size() || std::fclose(file) != 0) {
      std::perror("difftest: cannot write the recording");
      return 2;
    }
  }
  for (const auto& [name, count] : failures_) std::printf("%6u failures in %s\n", count, name.c_str());
  if (faulted_) std::printf("%llu cases with a signal\n", static_cast<unsigned long long>(faulted_));
  if (skipped_) {
    std::printf("%llu of the failures not run: their like died before\n", static_cast<unsigned long long>(skipped_));
  }
  if (dropped_) {
    std::printf("%llu cases left out: the oracle faults on them\n", static_cast<unsigned long long>(dropped_));
  }
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed_),
              static_cast<unsigned long long>(failed_));
  return failed_ ? 1 : 0;
}

}  // namespace
}  // namespace phybin::difftest

int main(int argc, char** argv) {
  const phybin::difftest::Options options = phybin::difftest::parse_options(argc, argv);
  return phybin::difftest::Harness(options).run();
}
