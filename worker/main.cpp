// phybin: runs one x86_64 program. Reads the options, loads the program, hands over to the runtime.
//
// Two ways in: by hand, `phybin [OPTION]... PROGRAM [ARG]...`, and from binfmt_misc, where the kernel puts the
// program's path in front of its arguments (and its argv[0] before those, if registered with the flag P) and with the
// flags O and C hands it over opened, as AT_EXECFD. Kernels before 5.12 do not say whether P was given, so the entry
// of the package names the worker by a link that ends in "-binfmt-P".
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "worker/cache/cache.h"
#include "worker/compile/compile_image.h"
#include "worker/config/options.h"
#include "worker/process/address_space.h"
#include "worker/process/cpu.h"
#include "worker/process/descriptors.h"
#include "worker/process/program.h"
#include "worker/process/trace.h"
#include "worker/runtime/runtime.h"
#include "worker/runtime/worker_memory.h"
#include "worker/syscalls/syscalls.h"
#include "worker/syscalls/threads.h"

#ifndef AT_FLAGS_PRESERVE_ARGV0
#define AT_FLAGS_PRESERVE_ARGV0 1
#endif

namespace phybin {
namespace {

constexpr const char* kConfigFile = "/etc/phybin.conf";
constexpr const char* kBinfmtSuffix = "-binfmt-P";
constexpr int kUsageError = 2;

void say(const std::string& line) {
  std::string text = "phybin: " + line + "\n";
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The value of a variable in the guest's environment.
const char* variable(const char* const* environment, const char* name) {
  for (; *environment; ++environment) {
    const char *text = *environment, *wanted = name;
    while (*wanted != '\0' && *text == *wanted) ++text, ++wanted;
    if (*wanted == '\0' && *text == '=') return text + 1;
  }
  return nullptr;
}

// By hand a program may be named without a slash; it is looked for here and then in PATH.
std::string find_in_path(const std::string& name, const char* path) {
  if (name.find('/') != name.npos || access(name.c_str(), F_OK) == 0 || !path) return name;
  for (std::string_view rest = path; !rest.empty();) {
    size_t end = std::min(rest.find(':'), rest.size());
    std::string candidate = std::string(rest.substr(0, end)) + "/" + name;
    char buffer[process::kPathBuffer];
    if (access(process::host_path(candidate.c_str(), buffer), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return name;
}

// The worker's own file: a descriptor that children are started from, and its path where that does not work.
void remember_worker(process::Program& program) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length > 0) program.worker_path.assign(path, static_cast<size_t>(length));
  int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
  if (fd >= 0) process::keep_descriptor(process::OwnDescriptor::kWorker, fd);
}

// What ps and /proc/PID/cmdline show of this process: the program's arguments, written over the worker's own, which
// have been copied. They take less room, but for scripts, whose last ones may be cut.
void show_arguments(int argc, char** argv, const std::string& arguments) {
  const size_t room = static_cast<size_t>(argv[argc - 1] - argv[0]) + strlen(argv[argc - 1]) + 1;
  const size_t size = std::min(arguments.size(), room);
  memcpy(argv[0], arguments.data(), size);
  memset(argv[0] + size, 0, room - size);
  argv[0][room - 1] = '\0';
}

[[noreturn]] void run(const process::Program& program) {
  GuestState* state = runtime::create_thread_state();
  if (!state) {
    say("no memory for the first thread");
    _exit(126);
  }
  state->rip = program.entry;
  state->gpr[4] = program.stack_pointer;  // RSP
  syscalls::end_first_thread(runtime::run_thread(*state));
}

int start(int argc, char** argv) {
  const char* const* const environment = process::environment();
  process::Program& program = process::program_for_start();
  config::Options& options = program.options;
  config::Messages messages;
  process::StartRequest request;
  request.secure = getauxval(AT_SECURE) != 0;

  errno = 0;
  const unsigned long given = getauxval(AT_EXECFD);
  const bool has_fd = errno == 0;
  const bool named_for_binfmt = argc > 0 && ends_with(argv[0], kBinfmtSuffix);
  const bool keeps_argv0 = getauxval(AT_FLAGS) & AT_FLAGS_PRESERVE_ARGV0 || named_for_binfmt;
  const bool by_kernel = (has_fd || keeps_argv0) && argc > 1;

  config::CommandLine line;
  config::Options from_command_line;
  line.program_index = 1;
  if (!by_kernel) {
    if (compile::is_command(argc - 1, argv + 1)) {
      _exit(compile::run_command(argc - 1, argv + 1, process::detect_host_features()));
    }
    line = config::apply_command_line(argc, argv, from_command_line);
    if (!line.error.empty()) {
      say(line.error + " (see phybin --help)");
      return kUsageError;
    }
    if (line.help) {
      fputs(config::help_text().c_str(), stdout);
      return 0;
    }
    if (line.version) {
      puts("phybin " PHYBIN_VERSION);
      return 0;
    }
    if (line.program_index >= argc) {
      say("no program given (see phybin --help)");
      return kUsageError;
    }
  }

  request.path = argv[line.program_index];
  std::string_view name = request.path;
  name = name.substr(name.rfind('/') + 1);
  config::apply_file_at(kConfigFile, name, options, messages);
  if (!request.secure) {
    if (const char* value = variable(environment, "PHYBIN_OPTIONS")) {
      config::apply_environment(value, options, messages);
    }
    if (const char* value = variable(environment, "PHYBIN_HEAP_SIZE")) {
      config::apply_heap_size(value, options, messages);
    }
  }
  if (!by_kernel) config::apply_command_line(argc, argv, options);
  for (const std::string& message : messages) say(message);
  program.passed_on = line.passed_on;

  int first_argument = line.program_index;
  if (by_kernel) {
    if (has_fd) request.fd = static_cast<int>(given);
    if (keeps_argv0) ++first_argument;
  } else {
    if (options.program_fd >= 0)
      request.fd = options.program_fd;
    else
      request.path = find_in_path(request.path, variable(environment, "PATH"));
  }
  request.arguments.assign(argv + first_argument, argv + argc);
  if (options.has_argv0 && !by_kernel) request.arguments[0] = options.argv0.c_str();
  request.environment = environment;

  remember_worker(program);
  const bool traces = !options.trace_instruction.to.empty();
  if (options.log || options.stats || traces) {
    process::keep_descriptor(process::OwnDescriptor::kMessages, dup(STDERR_FILENO));
  }
  process::initialise_address_space(options);
  runtime::Config config;
  config.host = process::detect_host_features();
  config.code.fast_math = options.fast_math;
  config.code.sse_check = !options.no_sse_check;
  config.code.memory_model =
      options.memory_model == config::MemoryModelChoice::kTso ? MemoryModel::kTso : MemoryModel::kWeak;
  config.code_memory_limit = options.jit_cache_size;
  config.prefetch_depth = options.prefetch_depth;
  config.handle_syscall = syscalls::handle;
  config.find_mapping = process::find_mapping;
  config.find_aliases = process::find_aliases;
  if (options.log) config.log_line = process::log_line;
  if (traces) {
    const std::string error = process::start_trace(options.trace_instruction);
    if (!error.empty()) {
      say(error);
      return kUsageError;
    }
    config.trace_region = process::trace_region;
  }

  const char* runtime_folder = request.secure ? nullptr : variable(environment, "XDG_RUNTIME_DIR");
  cache::prepare(options, request.secure, runtime_folder, config);
  runtime::initialise(config);

  process::Failure failure = process::load_program(request);
  if (failure.status) {
    say(failure.message);
    return failure.status;
  }
  std::string title = program.executable.substr(program.executable.rfind('/') + 1);
  prctl(PR_SET_NAME, title.c_str());
  show_arguments(argc, argv, program.arguments);
  run(program);
}

}  // namespace
}  // namespace phybin

int main(int argc, char** argv) { return phybin::start(argc, argv); }
