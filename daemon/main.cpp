// phybind: keeps the translation cache of a machine, or of a user, and hands it to workers. This file starts and ends
// it: options, configuration, signals, what systemd wants to know.
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>

#include "daemon/compile_child.h"
#include "daemon/daemon.h"
#include "daemon/fault_point.h"
#include "daemon/journal.h"
#include "daemon/log.h"
#include "daemon/options.h"
#include "daemon/reader_protocol.h"
#include "daemon/server.h"
#include "proto/places.h"

namespace phybin::daemon {
namespace {

using namespace std::chrono_literals;

Config read_config(const Options& options) {
  Messages messages;
  const bool given = !options.config.empty();
  Config config = load_config(given ? options.config : proto::kConfigFile, given, messages);
  for (const std::string& line : messages) log(LogLevel::kWarning, line);
  return config;
}

// Each worker costs a descriptor, and each image that is handed out.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void notify_reloading() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld",
             static_cast<long long>(now.tv_sec) * 1000000 + now.tv_nsec / 1000);
}

// Runs tick() each second and tells systemd that the event thread is alive.
void tick_each_second(Daemon& daemon, boost::asio::steady_timer& timer) {
  timer.expires_after(1s);
  timer.async_wait([&](const auto& error) {
    if (error) return;
    daemon.tick();
    sd_notify(0, "WATCHDOG=1");
    tick_each_second(daemon, timer);
  });
}

void wait_for_signals(Daemon& daemon, boost::asio::signal_set& signals) {
  signals.async_wait([&](const auto& error, int signal) {
    if (error) return;
    if (signal == SIGHUP) {
      notify_reloading();
      daemon.reload(read_config(daemon.options));
      sd_notify(0, "READY=1");
      wait_for_signals(daemon, signals);
      return;
    }
    log(LogLevel::kInfo, "ending");
    sd_notify(0, "STOPPING=1");
    daemon.stop();
  });
}

int run(const Options& options) {
  log_to_journal_if_there();
  const Config config = read_config(options);
  set_log_level(config.log_level);
  raise_descriptor_limit();
  signal(SIGPIPE, SIG_IGN);
  umask(077);
  try {
    Daemon daemon(options, config);
    std::string problem = daemon.open();
    if (!problem.empty()) {
      log(LogLevel::kError, problem);
      return 1;
    }
    boost::asio::signal_set signals(daemon.io, SIGTERM, SIGINT, SIGHUP);
    wait_for_signals(daemon, signals);
    boost::asio::steady_timer timer(daemon.io);
    tick_each_second(daemon, timer);
    daemon.server->start();
    log(LogLevel::kInfo, "ready: " + options.socket + ", cache " + daemon.cache_dir);
    sd_notify(0, "READY=1");
    daemon.io.run();
    return 0;
  } catch (const std::exception& error) {
    log(LogLevel::kError, error.what());
    return 1;
  }
}

}  // namespace
}  // namespace phybin::daemon

int main(int argc, char** argv) {
  using namespace phybin::daemon;
  if (argc > 1 && strcmp(argv[1], kReaderMode) == 0) return run_reader(kReaderSocket);
  if (argc > 1 && strcmp(argv[1], kCompileMode) == 0) return run_caged(argc, argv);
  Options options;
  if (const std::string problem = parse_options(argc, argv, options); !problem.empty()) {
    fprintf(stderr, "phybind: %s\n", problem.c_str());
    return 2;
  }
  if (options.help) {
    fputs(usage().c_str(), stdout);
    return 0;
  }
  if (options.version) {
    puts("phybind " PHYBIN_VERSION);
    return 0;
  }
  if (!set_fault_point(options.fault_point)) {
    fprintf(stderr, "phybind: --fault-point: allowed: %s\n", fault_point_names().c_str());
    return 2;
  }
  return run(options);
}
