// See module.h.
#include "client/module.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <vector>

#include "client/digest.h"

namespace phybin::client {

void add_module(const Arguments& arguments, Json& request) {
  if (!arguments.has("--module")) return;
  const std::string given = arguments.get("--module");
  char* resolved = realpath(given.c_str(), nullptr);
  request["module"] = resolved != nullptr ? std::string(resolved) : given;
  free(resolved);
  Descriptor file(open(given.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  ssize_t count;
  while ((count = read(file.get(), buffer.data(), buffer.size())) > 0) {
    hash.add(buffer.data(), static_cast<size_t>(count));
  }
  if (count == 0) request["module_sha256"] = hash.finish();
}

}  // namespace phybin::client
