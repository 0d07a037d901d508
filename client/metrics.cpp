// phybinctl metrics: the daemon's counters for Prometheus, on stdout or in a file for node-exporter, which reads
// files at any moment and so must never see half of one.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"

namespace phybin::client {
namespace {

// Empty, or what is wrong.
std::string write_whole(const std::string& file, const std::string& text) {
  // Beside it, so that it can be renamed; node-exporter reads only names that end in .prom.
  std::string name = file + ".XXXXXX";
  const Descriptor written(mkostemp(name.data(), O_CLOEXEC));
  if (!written) return name + ": " + strerror(errno);
  size_t done = 0;
  bool good = true;
  while (good && done < text.size()) {
    const ssize_t count = write(written.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    good = count > 0;
    if (good) done += static_cast<size_t>(count);
  }
  // node-exporter is another user.
  if (good && fchmod(written.get(), 0644) == 0 && rename(name.c_str(), file.c_str()) == 0) return {};
  std::string problem = file + ": " + strerror(errno);
  unlink(name.c_str());
  return problem;
}

}  // namespace

int run_metrics(const Arguments& arguments) {
  const bool to_file = arguments.has("--textfile");
  if (to_file && arguments.get("--textfile").empty()) return usage_error("--textfile: name a file");
  const Answer answer = ask_once(arguments, {{"request", "metrics"}});
  if (answer.status != kSuccess) return answer.status;
  const Json& body = member(answer.body, "text");
  if (!body.is_string()) return failure("the daemon sent no metrics");
  const std::string metrics = body.get<std::string>();
  if (to_file) {
    if (const std::string problem = write_whole(arguments.get("--textfile"), metrics); !problem.empty()) {
      return failure(problem);
    }
    if (arguments.has("--json")) print_json({{"file", arguments.get("--textfile")}, {"bytes", metrics.size()}});
  } else if (arguments.has("--json")) {
    print_json({{"text", metrics}});
  } else {
    print(metrics);
  }
  return kSuccess;
}

}  // namespace phybin::client
