// See journal.h.
#include "daemon/journal.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "daemon/log.h"

namespace phybin::daemon {
namespace {

// Of syslog(3), by LogLevel.
constexpr int kPriorities[] = {3, 4, 6, 7};

bool send(LogLevel level, std::string_view text, std::span<const LogField> fields) {
  std::vector<std::string> entries;
  entries.reserve(fields.size() + 3);
  entries.push_back("MESSAGE=" + std::string(text));
  entries.push_back("PRIORITY=" + std::to_string(kPriorities[static_cast<size_t>(level)]));
  entries.emplace_back("SYSLOG_IDENTIFIER=phybind");
  for (const LogField& field : fields) entries.push_back(std::string(field.name) + "=" + field.value);
  std::vector<iovec> parts;
  for (std::string& entry : entries) parts.push_back({entry.data(), entry.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

// $JOURNAL_STREAM names the device and inode of the stream; a program that inherited the variable and has another
// stderr is not meant.
bool stderr_is_the_journal() {
  const char* stream = getenv("JOURNAL_STREAM");
  unsigned long long device = 0, inode = 0;
  struct stat status {};
  return stream != nullptr && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
         fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

}  // namespace

void log_to_journal_if_there() {
  if (stderr_is_the_journal()) set_log_sink(send);
}

}  // namespace phybin::daemon
