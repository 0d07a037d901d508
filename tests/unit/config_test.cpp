// Options: sources, precedence, and what users are told about mistakes.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "proto/config_keys.h"
#include "worker/config/options.h"

namespace phybin::config {
namespace {

std::string joined(const Messages& messages) {
  std::string text;
  for (const auto& line : messages) text += line + "\n";
  return text;
}

Messages file(std::string_view text, Options& options, std::string_view program = "prog") {
  Messages messages;
  apply_file(text, "/etc/phybin.conf", program, options, messages);
  return messages;
}

CommandLine command_line(std::vector<const char*> words, Options& options) {
  words.insert(words.begin(), "phybin");
  words.push_back(nullptr);
  return apply_command_line(static_cast<int>(words.size()) - 1, const_cast<char* const*>(words.data()), options);
}

TEST(Config, Defaults) {
  Options options;
  EXPECT_EQ(options.shared_translation_cache, SharedCache::kAuto);
  EXPECT_EQ(options.memory_model, MemoryModelChoice::kAuto);
  EXPECT_EQ(options.jit_cache_size, 256u << 20);
  EXPECT_EQ(options.prefetch_depth, 4u);
  EXPECT_FALSE(options.fast_math);
}

TEST(Config, Trace) {
  Options options;
  EXPECT_EQ(command_line({"--trace-instruction", "prog"}, options).error, "");
  EXPECT_EQ(options.trace_instruction.to, "on");
  EXPECT_EQ(command_line({"--trace-instruction=/tmp/trace,0x401000-0x40a000", "prog"}, options).error, "");
  EXPECT_EQ(options.trace_instruction.to, "/tmp/trace");
  EXPECT_EQ(options.trace_instruction.start, 0x401000u);
  EXPECT_EQ(options.trace_instruction.end, 0x40a000u);
  EXPECT_EQ(command_line({"--trace-instruction=on,main", "prog"}, options).error, "");
  EXPECT_EQ(options.trace_instruction.symbol, "main");
  EXPECT_EQ(options.trace_instruction.end, UINT64_MAX);
  EXPECT_EQ(command_line({"--trace-instruction=off", "prog"}, options).error, "");
  EXPECT_EQ(options.trace_instruction.to, "");
  for (const char* bad :
       {"--trace-instruction=", "--trace-instruction=on,", "--trace-instruction=on,0x2-0x1",
        "--trace-instruction=on,0x2", "--trace-instruction=on,0x2-3", "--trace-instruction=on,0xg-0xh"}) {
    EXPECT_NE(command_line({bad, "prog"}, options).error, "") << bad;
  }
}

TEST(Config, FileSetsKeys) {
  Options options;
  EXPECT_EQ(joined(file("# comment\n\n memory_model = tso   # ordered\nJIT_cache_size=1G\r\nprefetch_depth\t=\t0\n"
                        "fast_math = on\nrootfs = /srv/x86_64//\nno_sse_check=on",
                        options)),
            "");
  EXPECT_EQ(options.memory_model, MemoryModelChoice::kTso);
  EXPECT_EQ(options.jit_cache_size, 1u << 30);
  EXPECT_EQ(options.prefetch_depth, 0u);
  EXPECT_TRUE(options.fast_math);
  EXPECT_TRUE(options.no_sse_check);
  EXPECT_EQ(options.rootfs, "/srv/x86_64");
}

TEST(Config, SectionWinsOverGlobalWhereverItStands) {
  const char* text = "[program:prog]\nmemory_model = weak\n[program:other]\nmemory_model = tso\nfast_math = on\n";
  Options options;
  EXPECT_EQ(joined(file(text, options)), "");
  EXPECT_EQ(options.memory_model, MemoryModelChoice::kWeak);
  EXPECT_FALSE(options.fast_math);
  Options later;
  EXPECT_EQ(joined(file("[program: prog ]\nprefetch_depth=1\n[program:prog]\nprefetch_depth=2\n", later)), "");
  EXPECT_EQ(later.prefetch_depth, 2u);
}

TEST(Config, SourcesInOrderOfPrecedence) {
  Options options;
  Messages messages;
  apply_file("memory_model = tso\nprefetch_depth = 1\nfast_math = on\n", "f", "prog", options, messages);
  apply_environment("--prefetch-depth=2  --memory-model=weak", options, messages);
  CommandLine line = command_line({"--memory-model=auto", "/bin/prog", "--fast-math"}, options);
  EXPECT_EQ(joined(messages), "");
  EXPECT_EQ(line.error, "");
  EXPECT_EQ(line.program_index, 2);
  EXPECT_EQ(options.memory_model, MemoryModelChoice::kAuto);
  EXPECT_EQ(options.prefetch_depth, 2u);
  EXPECT_TRUE(options.fast_math);
  EXPECT_EQ(line.passed_on, std::vector<std::string>{"--memory-model=auto"});
}

TEST(Config, BadValueInFileNamesFileLineKeyAndAllowed) {
  Options options;
  options.memory_model = MemoryModelChoice::kWeak;
  EXPECT_EQ(joined(file("\nmemory_model = strong\n", options)),
            "/etc/phybin.conf:2: memory_model: 'strong' is not allowed; allowed: auto, tso, weak; using the default, "
            "auto\n");
  EXPECT_EQ(options.memory_model, MemoryModelChoice::kAuto);
}

TEST(Config, NotImplementedIsSaidAndNotTaken) {
  Options options;
  EXPECT_NE(joined(file("mem_alias_check = on\n", options)).find("not implemented yet"), std::string::npos);
  EXPECT_FALSE(options.mem_alias_check);
  EXPECT_NE(command_line({"--enable-gpu-direct", "p"}, options).error.find("not implemented yet"), std::string::npos);
  EXPECT_NE(help_text().find("not implemented yet"), std::string::npos);
}

TEST(Config, SharedCache) {
  Options options;
  EXPECT_EQ(options.daemon_timeout, 20u);
  EXPECT_EQ(
      joined(file("shared_translation_cache = read\ndaemon_timeout = 5\ndaemon_socket = /run/d.sock\n", options)),
      "");
  EXPECT_EQ(options.shared_translation_cache, SharedCache::kRead);
  EXPECT_EQ(options.daemon_timeout, 5u);
  EXPECT_EQ(options.daemon_socket, "/run/d.sock");
  EXPECT_EQ(command_line({"--shared-translation-cache=on", "--daemon-socket=default", "p"}, options).error, "");
  EXPECT_EQ(options.shared_translation_cache, SharedCache::kOn);
  EXPECT_EQ(options.daemon_socket, "");
  EXPECT_NE(command_line({"--daemon-socket=relative", "p"}, options).error, "");
  const std::string too_long = "--daemon-socket=/" + std::string(107, 'x');
  EXPECT_NE(command_line({too_long.c_str(), "p"}, options).error, "");
  EXPECT_NE(command_line({"--daemon-timeout=10001", "p"}, options).error, "");
}

TEST(Config, DamagedFiles) {
  using namespace std::string_view_literals;
  for (std::string_view text :
       {"memory_model"sv, "= tso"sv, "[program:"sv, "[]"sv, "[program:]"sv, "\0\0\0"sv, "memory_model = \0tso"sv,
        "log = on"sv, "guest_fd = 3"sv, "JIT_cache_size = 99999999999999999999999"sv, "JIT_cache_size = -1"sv,
        "JIT_cache_size = 1"sv, "JIT_cache_size = G"sv, "prefetch_depth = 65"sv, "rootfs = relative"sv,
        "fast_math ="sv, "\x80\xff = \xfe"sv}) {
    Options options;
    EXPECT_EQ(file(text, options).size(), 1u) << text;
    EXPECT_EQ(options.memory_model, MemoryModelChoice::kAuto);
    EXPECT_EQ(options.jit_cache_size, 256u << 20);
  }
  Options options;
  EXPECT_EQ(file(std::string(100000, 'x'), options).size(), 1u);
  EXPECT_LT(file(std::string(100000, 'x'), options)[0].size(), 600u);
  EXPECT_EQ(file("\n\n   \n#x\n", options).size(), 0u);
  // Random bytes end in messages and nothing else.
  uint64_t seed = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      text += "memory_model=tso\n[program:]# \t\0GMK19"[(seed >> 33) % 36];
    }
    file(text, options);
  }
}

TEST(Config, FilesThatCannotBeRead) {
  Options options;
  Messages messages;
  apply_file_at("/nonexistent/phybin.conf", "p", options, messages);
  EXPECT_TRUE(messages.empty());
  apply_file_at("/", "p", options, messages);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0], "/: not a regular file; using the defaults");
  std::string pipe = testing::TempDir() + "phybin-conf-pipe-" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  messages.clear();
  apply_file_at(pipe.c_str(), "p", options, messages);
  EXPECT_EQ(messages.size(), 1u);
  unlink(pipe.c_str());
}

TEST(Config, Environment) {
  Options options;
  Messages messages;
  apply_environment("--memory-model=x bogus --nope --fast-math --log", options, messages);
  EXPECT_EQ(messages.size(), 3u) << joined(messages);
  EXPECT_EQ(messages[0],
            "PHYBIN_OPTIONS: --memory-model: 'x' is not allowed; allowed: auto, tso, weak; using the default, auto");
  EXPECT_TRUE(options.fast_math);
  EXPECT_TRUE(options.log);
  messages.clear();
  apply_environment("--guest-fd=3", options, messages);
  EXPECT_EQ(messages.size(), 1u);
  messages.clear();
  apply_heap_size("512M", options, messages);
  EXPECT_EQ(options.heap_size, 512u << 20);
  apply_heap_size("12Q", options, messages);
  EXPECT_EQ(messages.size(), 1u);
}

TEST(Config, CommandLine) {
  Options options;
  EXPECT_NE(command_line({"--memory-model=x", "p"}, options).error, "");
  EXPECT_NE(command_line({"--memory-model", "p"}, options).error, "");
  EXPECT_NE(command_line({"--memory_model=tso", "p"}, options).error, "");
  EXPECT_NE(command_line({"-x", "p"}, options).error, "");
  EXPECT_EQ(options.memory_model, MemoryModelChoice::kAuto);
  EXPECT_EQ(command_line({"--", "--p"}, options).program_index, 2);
  EXPECT_EQ(command_line({}, options).program_index, 1);
  EXPECT_TRUE(command_line({"--help"}, options).help);
  EXPECT_TRUE(command_line({"--version"}, options).version);
  CommandLine child = command_line({"--log", "--guest-argv0=-sh", "--guest-fd=7", "--", "p"}, options);
  EXPECT_EQ(child.error, "");
  EXPECT_EQ(child.passed_on, std::vector<std::string>{"--log"});
  EXPECT_TRUE(options.has_argv0);
  EXPECT_EQ(options.argv0, "-sh");
  EXPECT_EQ(options.program_fd, 7);
}

TEST(Config, CheckReportsEveryBadLineOfEverySection) {
  Messages messages;
  check_file(
      "fast_math = maybe\n"
      "cache_size = 4G\n"
      "[program:a]\n"
      "fast_math = no\n"
      "prefetch_depth = 3\n"
      "cache_size = 1G\n"
      "[programs]\n"
      "fast_math = ignored\n"
      "[program:b]\n"
      "what\n"
      "no_such = 1 # comment\n",
      "f", messages);
  std::vector<std::string> lines;
  for (const std::string& message : messages) lines.push_back(message.substr(0, message.find(' ')));
  EXPECT_EQ(lines, (std::vector<std::string>{"f:1:", "f:4:", "f:6:", "f:7:", "f:10:", "f:11:"})) << joined(messages);
  messages.clear();
  check_file("memory_model = tso\n\n# all right\n[program:x]\nmemory_model=weak", "f", messages);
  EXPECT_EQ(joined(messages), "");
}

}  // namespace

TEST(ConfigFile, CommentsBeginAtTheStartOrBehindBlanks) {
  EXPECT_EQ(proto::without_comment("# all"), "");
  EXPECT_EQ(proto::without_comment("key = value # why"), "key = value ");
  EXPECT_EQ(proto::without_comment("cache_dir = /srv/a#b\t#c"), "cache_dir = /srv/a#b\t");
}

}  // namespace phybin::config
