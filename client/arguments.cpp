// See arguments.h.
#include "client/arguments.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace phybin::client {
namespace {

const OptionRule* find_rule(std::span<const OptionRule> rules, std::string_view name) {
  for (const OptionRule& rule : rules) {
    if (name == rule.name) return &rule;
  }
  return nullptr;
}

// Commands that begin with `first`.
std::string known_after(std::string_view first) {
  std::string known;
  for (const Command& command : commands()) {
    std::string_view words = command.words;
    const size_t space = words.find(' ');
    std::string_view word = words.substr(0, space);
    if (!first.empty()) {
      if (word != first || space == words.npos) continue;
      word = words.substr(space + 1);
    } else if (known.ends_with(word)) {
      continue;
    }
    if (!known.empty()) known += ", ";
    known += word;
  }
  return known;
}

// Finds the command that `words` begin with and removes its words.
const Command* take_command(std::vector<std::string>& words, std::string& error) {
  if (words.empty()) {
    error = "no command given; commands: " + known_after({});
    return nullptr;
  }
  bool first_is_known = false;
  for (const Command& command : commands()) {
    std::string_view name = command.words;
    const size_t space = name.find(' ');
    if (words[0] != name.substr(0, space)) continue;
    first_is_known = true;
    if (space != name.npos && (words.size() < 2 || words[1] != name.substr(space + 1))) continue;
    words.erase(words.begin(), words.begin() + (space == name.npos ? 1 : 2));
    return &command;
  }
  if (!first_is_known) {
    error = "unknown command '" + words[0] + "'; commands: " + known_after({});
  } else if (words.size() < 2) {
    error = "'" + words[0] + "' needs a second word: " + known_after(words[0]);
  } else {
    error = "unknown command '" + words[0] + " " + words[1] + "'; after '" + words[0] + "': " + known_after(words[0]);
  }
  return nullptr;
}

std::string option_lines(std::span<const OptionRule> rules) {
  std::string text;
  for (const OptionRule& rule : rules) {
    std::string left = "  " + std::string(rule.name);
    if (rule.value != nullptr) left += std::string("=") + rule.value;
    if (left.size() < 26) {
      left.resize(26, ' ');
    } else {
      left += "\n" + std::string(26, ' ');
    }
    for (const char* c = rule.help; *c != 0; ++c) {
      left += *c;
      if (*c == '\n') left += std::string(26, ' ');
    }
    text += left + "\n";
  }
  return text;
}

}  // namespace

std::string Arguments::get(std::string_view name, std::string_view preset) const {
  const auto found = options.find(name);
  return found == options.end() ? std::string(preset) : found->second;
}

Parsed parse(int argc, char* const* argv) {
  Parsed result;
  // Which options there are depends on the command, and options may stand before it: first the words alone. An
  // option with a value in a word of its own takes that word along if any command has an option of that name.
  std::vector<std::string> words;
  std::vector<std::pair<std::string, std::string>> given;
  std::vector<bool> has_value;
  const auto takes_value = [](std::string_view name) {
    if (const OptionRule* rule = find_rule(common_options(), name)) return rule->value != nullptr;
    for (const Command& command : commands()) {
      if (const OptionRule* rule = find_rule(command.options, name)) return rule->value != nullptr;
    }
    return false;
  };
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--") {
      words.insert(words.end(), argv + i + 1, argv + argc);
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      words.push_back(word);
      continue;
    }
    if (word == "-h") word = "--help";
    if (word == "-V") word = "--version";
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    if (equals != word.npos) {
      given.emplace_back(name, word.substr(equals + 1));
      has_value.push_back(true);
    } else if (takes_value(name)) {
      if (i + 1 == argc) {
        result.error = name + " needs a value";
        return result;
      }
      given.emplace_back(name, argv[++i]);
      has_value.push_back(true);
    } else {
      given.emplace_back(name, "");
      has_value.push_back(false);
    }
  }
  for (const auto& [name, value] : given) {
    if (name == "--help" || name == "--version") result.arguments.options[name] = value;
  }
  const bool only_words = result.arguments.has("--help") || result.arguments.has("--version");
  const Command* command = take_command(words, result.error);
  if (command == nullptr) {
    if (only_words && words.empty()) result.error.clear();
    return result;
  }
  if (only_words) {
    result.command = command;
    return result;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string& name = given[i].first;
    const OptionRule* rule = find_rule(command->options, name);
    if (rule == nullptr) rule = find_rule(common_options(), name);
    if (rule == nullptr) {
      result.error = std::string(command->words) + ": unknown option " + name;
    } else if ((rule->value != nullptr) != has_value[i]) {
      result.error =
          std::string(command->words) + ": " + name + (rule->value != nullptr ? " needs a value" : " takes no value");
    } else if (!result.arguments.options.emplace(given[i]).second) {
      result.error = std::string(command->words) + ": " + name + " is given twice";
    }
    if (!result.error.empty()) return result;
  }
  if (words.size() < command->least) {
    result.error = std::string(command->words) + " needs " + command->operands;
    return result;
  }
  if (words.size() > command->most) {
    result.error = std::string(command->words) + ": unexpected '" + words[command->most] + "'";
    return result;
  }
  result.arguments.operands = std::move(words);
  result.command = command;
  return result;
}

std::string help_text() {
  std::string text =
      "Usage: phybinctl COMMAND [OPTION]...\n"
      "Looks at and steers phybind, the daemon that keeps the machine's translations.\n\nCommands:\n";
  for (const Command& command : commands()) {
    std::string left = "  " + std::string(command.words);
    if (*command.operands != 0) left += std::string(" ") + command.operands;
    left.resize(std::max<size_t>(left.size() + 1, 26), ' ');
    text += left + command.summary + "\n";
  }
  text += "\nOptions of every command:\n" + option_lines(common_options());
  text +=
      "\n`phybinctl COMMAND --help` tells more of one command.\n\n"
      "Exit status: 0 done; 1 refused, failed, or a check found something; 2 the command line is wrong;\n"
      "3 no daemon answers.\n\n"
      "Without --socket the system's daemon is asked (/run/phybin/phybind.sock), or the user's own\n"
      "($XDG_RUNTIME_DIR/phybin/phybind.sock) where there is no other.\n";
  return text;
}

std::string help_text(const Command& command) {
  std::string text = "Usage: phybinctl " + std::string(command.words);
  if (*command.operands != 0) text += std::string(" ") + command.operands;
  text += " [OPTION]...\n" + std::string(command.summary) + ".\n";
  if (*command.details != 0) text += "\n" + std::string(command.details) + "\n";
  text += "\nOptions:\n" + option_lines(command.options) + option_lines(common_options());
  text += "\nExit status: 0 done; 1 refused, failed or found something; 2 wrong command line; 3 no daemon answers.\n";
  return text;
}

int usage_error(const std::string& message) {
  fprintf(stderr, "phybinctl: %s (--help explains)\n", message.c_str());
  return kUsage;
}

int failure(const std::string& message) {
  fprintf(stderr, "phybinctl: %s\n", message.c_str());
  return kFailure;
}

}  // namespace phybin::client
