// phybinctl top: the translated programs of the machine, live. The daemon reads the counters that workers share with
// it; nothing here or there stops or signals a worker.
//
// On a terminal the screen is redrawn until q is pressed. Elsewhere each round is printed below the last one, with
// --json as one line a round, so that the output can be piped; --once prints one round.
#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"
#include "client/terminal.h"

namespace phybin::client {
namespace {

using Clock = std::chrono::steady_clock;

// What the rates of the next round are computed from, by process.
struct Sample {
  Clock::time_point time;
  std::map<uint64_t, uint64_t> translated;
};

std::string share(const Json& worker) {
  const Json& rate = member(worker, "hit_rate");
  if (!rate.is_number()) return "-";
  return std::to_string(std::lround(rate.get<double>() * 100)) + " %";
}

std::string head(const Json& body) {
  const Json& totals = member(body, "totals");
  const Json& jobs = member(body, "jobs");
  return "workers " + std::to_string(number(totals, "workers")) + ", threads " +
         std::to_string(number(totals, "threads")) + "; private code " + format_bytes(number(totals, "code_bytes")) +
         ", images " + format_bytes(number(totals, "image_bytes")) + " mapped; compile jobs " +
         std::to_string(number(jobs, "running")) + " running, " + std::to_string(number(jobs, "queued")) +
         " queued\n";
}

std::string rows(const Json& body, const Sample& last, Clock::time_point now) {
  Table table({">PID", "USER", "PROGRAM", "POLICY", ">NODE", ">THREADS", ">IMAGES", ">MAPPED", ">PRIVATE", ">HITS",
               ">TRANSLATED", ">PER S"});
  const double elapsed = std::chrono::duration<double>(now - last.time).count();
  for (const Json& worker : member(body, "workers")) {
    const uint64_t pid = number(worker, "pid"), translated = number(worker, "guest_instructions");
    std::string rate = "-";
    if (const auto before = last.translated.find(pid); before != last.translated.end() && elapsed > 0) {
      const uint64_t grown = translated > before->second ? translated - before->second : 0;
      rate = format_count(static_cast<uint64_t>(static_cast<double>(grown) / elapsed));
    }
    table.add({std::to_string(pid), format_user(static_cast<int64_t>(number(worker, "uid"))), text(worker, "program"),
               text(worker, "policy"), std::to_string(number(worker, "node")),
               std::to_string(number(worker, "threads")), std::to_string(number(worker, "images")),
               format_bytes(number(worker, "image_bytes")), format_bytes(number(worker, "code_bytes")), share(worker),
               format_count(translated), rate});
  }
  return table.empty() ? "no translated program is connected\n" : table.render(terminal_size(STDOUT_FILENO).columns);
}

// Cut to the lines that fit.
std::string fitting(const std::string& text, size_t lines) {
  size_t position = 0;
  for (size_t i = 1; i < lines; ++i) {
    const size_t end = text.find('\n', position);
    if (end == text.npos) return text;
    position = end + 1;
  }
  return text.substr(0, position);
}

std::optional<unsigned> interval_of(const Arguments& arguments) {
  const std::string text = arguments.get("--interval", "2");
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds >= 0.1 && seconds <= 3600)) return {};
  return static_cast<unsigned>(seconds * 1000);
}

}  // namespace

int run_top(const Arguments& arguments) {
  const std::optional<unsigned> interval = interval_of(arguments);
  if (!interval) return usage_error("--interval: allowed are 0.1 to 3600 seconds");
  Connection connection;
  std::string error;
  if (const int code = connection.open(arguments, error); code != kSuccess) {
    failure(error);
    return code;
  }
  const bool json = arguments.has("--json"), once = arguments.has("--once");
  const bool live = !json && !once && isatty(STDOUT_FILENO) == 1;
  std::optional<LiveScreen> screen;
  Sample last{Clock::now(), {}};
  for (bool first = true;; first = false) {
    Answer answer = connection.ask({{"request", "top"}});
    if (answer.status != kSuccess) {
      screen.reset();
      failure(answer.error);
      return answer.status;
    }
    const Clock::time_point now = Clock::now();
    if (json) {
      if (once) {
        print_json(answer.body);
      } else {
        print(answer.body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
      }
    } else {
      const std::string shown = head(answer.body) + "\n" + rows(answer.body, last, now);
      if (live) {
        if (!screen) screen.emplace();
        std::string drawn = fitting(shown, terminal_size(STDOUT_FILENO).lines);
        for (size_t at = 0; (at = drawn.find('\n', at)) != drawn.npos; at += 4) drawn.replace(at, 1, "\033[K\n");
        print("\033[H" + drawn + "\033[J");
      } else {
        print((first ? "" : "\n") + shown);
      }
    }
    // The reader of a pipe wants each round as it comes, and may have gone away.
    if (fflush(stdout) != 0) return kFailure;
    if (once) return kSuccess;
    last = {now, {}};
    for (const Json& worker : member(answer.body, "workers")) {
      last.translated[number(worker, "pid")] = number(worker, "guest_instructions");
    }
    if (screen) {
      if (!screen->wait(*interval)) return kSuccess;
    } else {
      poll(nullptr, 0, static_cast<int>(*interval));
    }
  }
}

}  // namespace phybin::client
