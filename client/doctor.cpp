// See doctor.h.
#include "client/doctor.h"

#include <sys/stat.h>

#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"

namespace phybin::client {
namespace {

enum class About {
  kTree,     // what files say: works on recorded trees
  kDaemon,   // the daemon of this machine
  kRunning,  // programs that are run on this machine
};

struct Check {
  About about;
  CheckFunction run;
};

constexpr Check kChecks[] = {
    {About::kTree, check_cpu},
    {About::kTree, check_kernel},
    {About::kTree, check_page_size},
    {About::kTree, check_binfmt},
    {About::kTree, check_sysctls},
    {About::kTree, check_configuration},
    {About::kTree, check_loader},
    {About::kTree, check_pci_bars},
    {About::kTree, check_virtual_display},
    {About::kTree, check_gpu_power},
    {About::kTree, check_gpu_access},
    {About::kDaemon, check_daemon},
    {About::kRunning, check_run_by_worker},
    {About::kRunning, check_run_by_kernel},
};

// What is of this machine says nothing of a recorded one, unless it is asked for.
bool wanted(About about, const Arguments& arguments, bool recorded) {
  if (about == About::kDaemon) return !recorded || arguments.has("--socket");
  if (about == About::kRunning) return !recorded || arguments.has("--worker");
  return true;
}

const char* name_of(Health health) {
  constexpr const char* kNames[] = {"OK", "warn", "fail"};
  return kNames[static_cast<size_t>(health)];
}

std::string render(const Finding& finding, size_t width) {
  std::string line = name_of(finding.health);
  line.resize(6, ' ');
  line += finding.check;
  line.resize(6 + width + 2, ' ');
  line += printable(finding.text);
  if (!finding.advice.empty()) line += "; " + printable(finding.advice);
  return line + "\n";
}

}  // namespace

int run_doctor(const Arguments& arguments) {
  const HostTree host(arguments.get("--root"));
  struct stat status {};
  if (host.recorded() && (stat(host.at("").c_str(), &status) != 0 || !S_ISDIR(status.st_mode))) {
    return usage_error("--root: " + host.at("") + " is not a folder");
  }
  Findings findings;
  for (const Check& check : kChecks) {
    if (wanted(check.about, arguments, host.recorded())) check.run({host, arguments}, findings);
  }
  size_t counts[3] = {}, width = 0;
  Json list = Json::array();
  for (const Finding& finding : findings.all()) {
    ++counts[static_cast<size_t>(finding.health)];
    width = std::max(width, finding.check.size());
    list.push_back({{"check", finding.check},
                    {"result", name_of(finding.health)},
                    {"text", finding.text},
                    {"advice", finding.advice.empty() ? Json(nullptr) : Json(finding.advice)}});
  }
  const size_t warnings = counts[1], failures = counts[2];
  if (arguments.has("--json")) {
    print_json({{"checks", std::move(list)}, {"warnings", warnings}, {"failures", failures}});
  } else {
    for (const Finding& finding : findings.all()) print(render(finding, width));
  }
  const bool bad = failures != 0 || (arguments.has("--strict") && warnings != 0);
  return bad ? kFailure : kSuccess;
}

}  // namespace phybin::client
