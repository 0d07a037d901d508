// See kernel_log.h.
//
// /dev/kmsg is the first choice. It is a ring: on a machine that has run for long, what was said at its start is
// gone, and that is where devices are set up; then the journal or syslog's file are asked.
#include "client/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "client/connection.h"
#include "client/run_program.h"

namespace phybin::client {
namespace {

constexpr const char* kFiles[] = {"/var/log/dmesg", "/var/log/kern.log", "/var/log/messages"};
constexpr double kJournalSeconds = 60;

// Each read gives one record: "PRIORITY,SEQUENCE,TIME,FLAGS;TEXT", with lines that begin with a blank below it.
// False: it cannot be read, errno says why. `whole`: the first record is there.
bool read_ring(KernelLog& log, bool& whole) {
  const Descriptor ring(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!ring) return false;
  char record[16 << 10];
  uint64_t first = UINT64_MAX;
  for (;;) {
    const ssize_t got = read(ring.get(), record, sizeof record);
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: overtaken, the next one is there
    if (got < 0 && errno == EAGAIN) break;
    if (got < 0) return false;
    if (got == 0) break;
    const std::string_view text(record, static_cast<size_t>(got));
    const size_t semicolon = text.find(';'), comma = text.find(',');
    if (semicolon == text.npos || comma > semicolon) continue;
    const std::string_view rest = text.substr(comma + 1);
    if (const auto sequence = parse_number(rest.substr(0, rest.find(','))); sequence && *sequence < first) {
      first = *sequence;
    }
    log.lines.emplace_back(text.substr(semicolon + 1, text.find('\n', semicolon) - semicolon - 1));
  }
  whole = first == 0;
  return true;
}

// Lines since the kernel was last started; false if its start is not among them.
bool since_start(std::string_view text, KernelLog& log) {
  std::vector<std::string> lines;
  bool started = false;
  for (const std::string& whole : split_lines(text)) {
    const std::string_view line = whole;
    if (line.find("Linux version ") != line.npos) {
      lines.clear();
      started = true;
    }
    lines.emplace_back(line);
  }
  log.lines = std::move(lines);
  return started;
}

}  // namespace

KernelLog read_kernel_log(const HostTree& host) {
  KernelLog log;
  std::string why;
  if (!host.recorded()) {
    bool whole = false;
    if (!read_ring(log, whole)) why = std::string("/dev/kmsg: ") + strerror(errno);
    if (whole) return log;
    KernelLog journal;
    const ProgramResult result =
        run_program({"journalctl", "--dmesg", "--boot", "--output=cat", "--no-pager"}, kJournalSeconds);
    if (result.started && result.status == 0 && since_start(result.output, journal)) return journal;
  }
  for (const char* file : kFiles) {
    KernelLog saved;
    const std::optional<std::string> text = host.read(file);
    if (text && (since_start(*text, saved) || host.recorded())) return saved;
  }
  log.problem = why.empty() ? "its beginning is no longer there" : why;
  if (host.recorded()) log.problem = "neither var/log/dmesg nor var/log/kern.log is there";
  return log;
}

}  // namespace phybin::client
