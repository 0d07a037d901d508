// The command line of phybinctl. One table (commands.cpp) says words, options and help of each command; parsing,
// --help and the completion script's test read that table.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phybin::client {

// Exit statuses. Scripts depend on them.
enum ExitStatus : int {
  kSuccess = 0,
  kFailure = 1,      // the daemon refused, or a check found something
  kUsage = 2,        // the command line is wrong
  kNotReachable = 3  // no daemon answers
};

struct OptionRule {
  const char* name;   // with its dashes
  const char* value;  // what --help calls its value; nullptr: takes none
  const char* help;
};

struct Arguments {
  std::map<std::string, std::string, std::less<>> options;  // by name with dashes; "" for those without value
  std::vector<std::string> operands;

  bool has(std::string_view name) const { return options.find(name) != options.end(); }
  // The value, or `preset` when the option was not given.
  std::string get(std::string_view name, std::string_view preset = {}) const;
};

struct Command {
  const char* words;     // "cache show": one or two words
  const char* operands;  // for --help: "FILE", "[FILE]", ""
  unsigned least, most;  // number of operands
  std::span<const OptionRule> options;
  const char* summary;
  const char* details;  // for the command's own --help; may be ""
  int (*run)(const Arguments&);
};

// The commands, in the order of --help.
std::span<const Command> commands();
// Options that every command takes.
std::span<const OptionRule> common_options();

struct Parsed {
  const Command* command = nullptr;  // null: `error`, or --help or --version alone
  Arguments arguments;
  std::string error;  // one line
};

// Options may stand anywhere, as "--name value" or "--name=value"; "--" ends them.
Parsed parse(int argc, char* const* argv);

std::string help_text();
std::string help_text(const Command& command);

// Reports a mistake in the command line: one line on stderr. Returns kUsage.
int usage_error(const std::string& message);
// Reports what went wrong, likewise. Returns kFailure.
int failure(const std::string& message);

}  // namespace phybin::client
