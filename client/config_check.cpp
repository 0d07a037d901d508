// phybinctl config check: every line of the configuration file that is wrong. Worker and daemon share the file; each
// reads its own keys by its own table, and both tables are asked here.
#include "client/config_check.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"
#include "daemon/config.h"
#include "proto/places.h"
#include "worker/config/options.h"

namespace phybin::client {
namespace {

// Takes "FILE:LINE: TEXT" apart.
ConfigProblem to_problem(const std::string& file, const std::string& message) {
  ConfigProblem problem{0, message};
  if (message.compare(0, file.size() + 1, file + ":") != 0) return problem;
  const char* last = message.data() + message.size();
  const auto [end, error] = std::from_chars(message.data() + file.size() + 1, last, problem.line);
  if (error == std::errc() && last - end > 2 && end[0] == ':') problem.text.assign(end + 2, last);
  return problem;
}

}  // namespace

std::vector<ConfigProblem> config_problems(const std::string& file, const std::string& text) {
  std::vector<std::string> messages;
  config::check_file(text, file, messages);
  daemon::Config config = daemon::default_config();
  daemon::apply_config(text, file, config, messages);
  std::vector<ConfigProblem> problems;
  for (const std::string& message : messages) problems.push_back(to_problem(file, message));
  std::stable_sort(problems.begin(), problems.end(),
                   [](const ConfigProblem& a, const ConfigProblem& b) { return a.line < b.line; });
  return problems;
}

int run_config_check(const Arguments& arguments) {
  const bool named = !arguments.operands.empty();
  const std::string file = named ? arguments.operands[0] : proto::kConfigFile;
  std::vector<ConfigProblem> problems;
  bool exists = true;
  errno = 0;
  std::ifstream stream(file);
  if (stream) {
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (stream.bad()) return failure(file + ": cannot be read");
    problems = config_problems(file, text);
  } else if (errno == ENOENT && !named) {
    exists = false;
  } else {
    return failure(file + ": " + strerror(errno));
  }
  if (arguments.has("--json")) {
    Json list = Json::array();
    for (const ConfigProblem& problem : problems) list.push_back({{"line", problem.line}, {"problem", problem.text}});
    print_json({{"file", file}, {"exists", exists}, {"problems", list}});
  } else {
    for (const ConfigProblem& problem : problems) {
      print(file + ":" + (problem.line != 0 ? std::to_string(problem.line) + ":" : "") + " " + problem.text + "\n");
    }
    if (problems.empty()) print(file + (exists ? ": nothing is wrong\n" : ": not there, all defaults hold\n"));
  }
  return problems.empty() ? kSuccess : kFailure;
}

}  // namespace phybin::client
