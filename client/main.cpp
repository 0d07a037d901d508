// phybinctl: looks at and steers phybind. One command a run; everything about a command stands in its own file.
#include <cstdio>

#include "client/arguments.h"
#include "client/format.h"

int main(int argc, char** argv) {
  using namespace phybin::client;
  const Parsed parsed = parse(argc, argv);
  if (!parsed.error.empty()) return usage_error(parsed.error);
  int status = kSuccess;
  if (parsed.arguments.has("--help")) {
    print(parsed.command != nullptr ? help_text(*parsed.command) : help_text());
  } else if (parsed.arguments.has("--version")) {
    print("phybinctl " PHYBIN_VERSION "\n");
  } else {
    status = parsed.command->run(parsed.arguments);
  }
  // A full disk or a reader that has gone must not look like success.
  if (fflush(stdout) != 0 || ferror(stdout) != 0) {
    if (status == kSuccess) status = failure("cannot write the output");
  }
  return status;
}
