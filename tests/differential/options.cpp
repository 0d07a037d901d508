// Command line of difftest.
#include "tests/differential/options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace phybin::difftest {
namespace {

constexpr char kHelp[] = R"(usage: difftest [options]
Compares single instructions and random sequences under a translator with this machine's CPU.

  --runner FILE         the guest program that executes the cases (default: beside difftest)
  --translator COMMAND  how to run it under test, e.g. "qemu-aarch64 -cpu cortex-a72 build/arm64/worker/phybin"
  --group G             only this group (may be repeated); "all" for every group
  --form REGEX          only forms whose name matches
  --seed N              another selection of operands and states (default 1)
  --count N             cases for each form (default 24)
  --full                the same as --count 2048
  --sequences N         also N random sequences of instructions of the chosen groups
  --only-sequences N    the same without single instructions
  --flag-pairs N        instead: each kind of instruction that writes flags, of the chosen forms, before each kind that
                        reads them, N times (2: once with something between them)
  --sequence-states N   cases for each sequence (default 4)
  --tolerate FEATURE    nan-payload, x87-status, fault-progress, lock-address: do not compare; rounding, ftz, precision: do not
                        vary (README.md, "Limits")
  --check-mxcsr         compare the exception flags of MXCSR
  --faults              make most instructions fault, and compare signals and the state in their frames
  --record FILE         store what the oracle did, but for forms of which not all vendors' CPUs make the same
  --replay FILE         compare with what is stored, on machines without an x86 CPU. What is run follows from the file;
                        without --translator only whether the file is of the forms as they are
  --every N             of the stored forms and sequences only each Nth
  --oracle-vs-oracle    runs the oracle twice: must pass
  --inject-fault        flips a bit in every 97th result: must fail
  --reports N           failures to describe in full (default 40)
  --list                groups and forms
  --quiet               no progress line
)";

[[noreturn]] void usage_error(std::string_view text) {
  std::fprintf(stderr, "difftest: %.*s (--help explains)\n", int(text.size()), text.data());
  std::exit(2);
}

void tolerate(Options& options, std::string_view feature) {
  if (feature == "nan-payload") {
    options.compare.nan_payload = false;
  } else if (feature == "x87-status") {
    options.compare.x87_status = false;
  } else if (feature == "fault-progress") {
    options.compare.fault_progress = false;
  } else if (feature == "lock-address") {
    options.compare.lock_address = false;
  } else if (feature == "rounding") {
    options.units.state.rounding = false;
  } else if (feature == "ftz") {
    options.units.state.ftz = false;
  } else if (feature == "precision") {
    options.units.state.precision = false;
  } else {
    usage_error("--tolerate: unknown feature");
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  const std::string self = argv[0];
  const size_t slash = self.rfind('/');
  options.runner = (slash == std::string::npos ? "." : self.substr(0, slash)) + "/runner";
  for (int i = 1; i < argc; i++) {
    const std::string_view argument = argv[i];
    auto value = [&]() -> const char* {
      if (i + 1 >= argc) usage_error(std::string(argument) + " needs a value");
      return argv[++i];
    };
    auto number = [&] {
      const char* const text = value();
      char* end = nullptr;
      const unsigned long long parsed = std::strtoull(text, &end, 0);
      if (*text < '0' || *text > '9' || *end != 0) usage_error(std::string(argument) + ": no number: " + text);
      return parsed;
    };
    if (argument == "--runner") {
      options.runner = value();
    } else if (argument == "--translator") {
      options.translator = value();
    } else if (argument == "--group") {
      options.groups.push_back(value());
    } else if (argument == "--form") {
      options.form_pattern = value();
    } else if (argument == "--seed") {
      options.units.seed = number();
    } else if (argument == "--count") {
      options.units.count = unsigned(number());
    } else if (argument == "--full") {
      options.units.count = 2048;
    } else if (argument == "--sequences") {
      options.sequences = unsigned(number());
    } else if (argument == "--only-sequences") {
      options.sequences = unsigned(number());
      options.singles = false;
    } else if (argument == "--flag-pairs") {
      options.flag_pairs = unsigned(number());
      options.singles = false;
    } else if (argument == "--sequence-states") {
      options.units.sequence_states = unsigned(number());
    } else if (argument == "--every") {
      options.every = std::max(1u, unsigned(number()));
    } else if (argument == "--tolerate") {
      tolerate(options, value());
    } else if (argument == "--check-mxcsr") {
      options.compare.mxcsr_flags = true;
    } else if (argument == "--record") {
      options.record = value();
    } else if (argument == "--replay") {
      options.replay = value();
    } else if (argument == "--oracle-vs-oracle") {
      options.oracle_vs_oracle = true;
    } else if (argument == "--faults") {
      options.units.faults = true;
    } else if (argument == "--inject-fault") {
      options.inject_fault = true;
    } else if (argument == "--reports") {
      options.reports = unsigned(number());
    } else if (argument == "--list") {
      options.list = true;
    } else if (argument == "--quiet") {
      options.quiet = true;
    } else if (argument == "--help") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    } else {
      usage_error(std::string("unknown option ") + argv[i]);
    }
  }
  if (!options.record.empty() && !options.replay.empty()) usage_error("--record and --replay exclude each other");
  if (!options.replay.empty() && (options.oracle_vs_oracle || options.sequences || !options.groups.empty())) {
    usage_error("--replay: what is run follows from the file; --form and --every take a part of it");
  }
  if (options.flag_pairs && (!options.record.empty() || !options.replay.empty() || options.units.faults)) {
    usage_error("--flag-pairs: not with --record, --replay or --faults");
  }
  if (options.translator.empty() && !options.list && !options.oracle_vs_oracle && options.record.empty() &&
      options.replay.empty()) {
    usage_error("--translator, --oracle-vs-oracle, --record or --replay is needed");
  }
  return options;
}

}  // namespace phybin::difftest
