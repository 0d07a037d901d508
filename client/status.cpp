// phybinctl status, settle: what the daemon is doing, and waiting until it has nothing left to do.
#include <charconv>

#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"

namespace phybin::client {
namespace {

std::string render(const Json& status) {
  const Json& cache = member(status, "cache");
  const Json& jobs = member(status, "jobs");
  const Json& workers = member(status, "workers");
  Listing list;
  list.add("daemon", "phybind " + text(status, "version") + ", process " + std::to_string(number(status, "pid")) +
                         ", up " + format_duration(number(status, "uptime_seconds")));
  list.add("serves",
           std::string(flag(status, "system") ? "the system" : "one user") + " on " + text(status, "socket"));
  list.add("workers", std::to_string(number(workers, "connected")) + " connected, " +
                          std::to_string(number(workers, "total")) + " since start");
  std::string size = std::to_string(number(cache, "images")) + " images, " + format_bytes(number(cache, "bytes"));
  if (const uint64_t limit = number(cache, "limit_bytes"); limit != 0) {
    size += " of " + format_bytes(limit) + " (" + std::to_string(number(cache, "bytes") * 100 / limit) + " %)";
  }
  list.add("cache", size + ", in " + text(cache, "directory"));
  list.add("modules served", format_count(number(status, "hits")) + " with an image, " +
                                 format_count(number(status, "misses")) + " without");
  list.add("policy", text(status, "policy"));
  list.add("compile jobs", std::to_string(number(jobs, "running")) + " running, " +
                               std::to_string(number(jobs, "queued")) + " queued; since start " +
                               std::to_string(number(jobs, "done")) + " done, " +
                               std::to_string(number(jobs, "failed")) + " failed");
  list.add("state", flag(status, "idle") ? "idle" : "working");
  return list.render();
}

// Seconds, with a fraction; false if it is not a number that makes sense.
bool parse_seconds(const std::string& text, double& seconds) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc() && end == text.data() + text.size() && seconds > 0 && seconds < 1e9;
}

// Waits until the daemon is idle.
int wait_idle(const Arguments& arguments) {
  double limit = 0;
  if (arguments.has("--timeout") && !parse_seconds(arguments.get("--timeout"), limit)) {
    return usage_error("--timeout: '" + arguments.get("--timeout") + "' is not a number of seconds above 0");
  }
  Connection connection;
  std::string error;
  if (const int code = connection.open(arguments, error); code != kSuccess) {
    failure(error);
    return code;
  }
  connection.set_patience(limit);
  const Answer answer = connection.ask({{"request", "settle"}});
  if (answer.late) return failure("the daemon is still working after " + arguments.get("--timeout") + " s");
  if (answer.status != kSuccess) failure(answer.error);
  return answer.status;
}

}  // namespace

int run_status(const Arguments& arguments) {
  if (arguments.has("--wait")) {
    if (const int code = wait_idle(arguments); code != kSuccess) return code;
  } else if (arguments.has("--timeout")) {
    return usage_error("--timeout needs --wait");
  }
  const Answer answer = ask_once(arguments, {{"request", "status"}});
  if (answer.status != kSuccess) return answer.status;
  if (arguments.has("--json")) {
    print_json(answer.body);
  } else {
    print(render(answer.body));
  }
  return kSuccess;
}

int run_settle(const Arguments& arguments) {
  const int code = wait_idle(arguments);
  if (code == kSuccess && arguments.has("--json")) print_json({{"idle", true}});
  return code;
}

}  // namespace phybin::client
