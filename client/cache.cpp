// phybinctl cache list, show, verify, purge.
#include <charconv>
#include <ctime>
#include <optional>
#include <span>

#include "client/age.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"
#include "client/module.h"
#include "client/progress.h"
#include "proto/image_format.h"

namespace phybin::client {
namespace {

uint64_t seconds_since(uint64_t when) {
  const auto now = static_cast<uint64_t>(time(nullptr));
  return now > when ? now - when : 0;
}

std::string ago(const Json& object, std::string_view name) {
  const uint64_t when = number(object, name);
  return when == 0 ? "never" : format_duration(seconds_since(when));
}

std::string local_time(uint64_t when) {
  const auto value = static_cast<time_t>(when);
  tm parts{};
  char buffer[64];
  if (when == 0 || localtime_r(&value, &parts) == nullptr) return "never";
  return strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M:%S", &parts) != 0 ? buffer : "";
}

std::string audience(const Json& image) {
  const Json& uid = member(image, "uid");
  return uid.is_number() ? format_user(uid.get<int64_t>()) : "everybody";
}

// As HostFeatures (worker/translator/host_features.h) has them, below its tsc_shift, and CodeOptionBits.
constexpr const char* kFeatureNames[] = {"crc32", "aes",    "pmull", "sha1",  "sha2",   "lse",
                                         "lrcpc", "lrcpc2", "lse2",  "flagm", "flagm2", "frintts"};
constexpr const char* kOptionNames[] = {"fast-math", "no-sse-check"};

std::string bit_names(uint64_t bits, std::span<const char* const> names) {
  std::string text;
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((bits >> bit & 1) == 0) continue;
    if (!text.empty()) text += " ";
    text += bit < names.size() ? names[bit] : "bit" + std::to_string(bit);
  }
  return text.empty() ? "none" : text;
}

ProgressFunction shown_by(Progress& progress) {
  return [&progress](const Json& state) {
    progress.show(number(state, "done"), number(state, "total"), text(state, "what"));
  };
}

}  // namespace

int run_cache_list(const Arguments& arguments) {
  Json request{{"request", "cache-list"}};
  add_module(arguments, request);
  const Answer answer = ask_once(arguments, request);
  if (answer.status != kSuccess) return answer.status;
  if (arguments.has("--json")) {
    print_json(answer.body);
    return kSuccess;
  }
  Table table({">ID", "FOR", ">SIZE", ">ENTRIES", ">USES", "LAST USED", "STATE", "MODULE"});
  for (const Json& image : member(answer.body, "images")) {
    table.add({std::to_string(number(image, "id")), audience(image), format_bytes(number(image, "bytes")),
               format_count(number(image, "entries")), format_count(number(image, "uses")), ago(image, "used_at"),
               text(image, "state"), text(image, "module")});
  }
  print(table.render());
  return kSuccess;
}

int run_cache_show(const Arguments& arguments) {
  uint64_t id = 0;
  const std::string& operand = arguments.operands[0];
  const auto [end, error] = std::from_chars(operand.data(), operand.data() + operand.size(), id);
  if (error != std::errc() || end != operand.data() + operand.size()) {
    return usage_error("cache show: '" + operand + "' is not the number of an image (`phybinctl cache list`)");
  }
  const Answer answer = ask_once(arguments, {{"request", "cache-show"}, {"id", id}});
  if (answer.status != kSuccess) return answer.status;
  if (arguments.has("--json")) {
    print_json(answer.body);
    return kSuccess;
  }
  const Json& image = member(answer.body, "image");
  Listing list;
  list.add("image", std::to_string(number(image, "id")) + ", " + text(image, "state"));
  list.add("module", text(image, "module"));
  list.add("module SHA-256", text(image, "module_sha256"));
  list.add("module size", format_bytes(number(image, "module_bytes")));
  list.add("serves", audience(image));
  list.add("file", text(image, "file"));
  list.add("size", format_bytes(number(image, "bytes")));
  list.add("content SHA-256", text(image, "content_sha256"));
  list.add("entry points", std::to_string(number(image, "entries")));
  list.add("code", "weak " + format_bytes(number(image, "weak_code_bytes")) + ", tso " +
                       format_bytes(number(image, "tso_code_bytes")));
  list.add("translator", text(image, "translator_build"));
  const uint64_t host = number(image, "host_features");
  list.add("host features", bit_names(host & ((uint64_t{1} << proto::kTscShiftBit) - 1), kFeatureNames));
  list.add("TSC", "the counter shifted by " + std::to_string(host >> proto::kTscShiftBit));
  list.add("options", bit_names(number(image, "code_options"), kOptionNames));
  list.add("origin", text(image, "origin"));
  list.add("made", local_time(number(image, "created_at")));
  list.add("last used", local_time(number(image, "used_at")));
  list.add("uses", std::to_string(number(image, "uses")));
  list.add("mapped now by", std::to_string(number(image, "workers")) + " workers");
  list.add("copies", std::to_string(number(image, "copies")) + " on memory nodes");
  print(list.render());
  return kSuccess;
}

int run_cache_verify(const Arguments& arguments) {
  Answer answer;
  {
    Progress progress("verifying image");
    answer = ask_once(arguments, {{"request", "cache-verify"}}, shown_by(progress));
  }
  if (answer.status != kSuccess) return answer.status;
  const Json& problems = member(answer.body, "problems");
  if (arguments.has("--json")) {
    print_json(answer.body);
  } else {
    for (const Json& problem : problems) {
      print("image " + std::to_string(number(problem, "id")) + ": " + text(problem, "problem") + ": removed\n");
    }
    print(std::to_string(number(answer.body, "verified")) + " images verified, " + std::to_string(problems.size()) +
          " damaged\n");
  }
  return problems.empty() ? kSuccess : kFailure;
}

int run_cache_purge(const Arguments& arguments) {
  Json request{{"request", "cache-purge"}};
  if (arguments.has("--older-than")) {
    const std::optional<uint64_t> age = parse_age(arguments.get("--older-than"));
    if (!age) {
      return usage_error("--older-than: '" + arguments.get("--older-than") +
                         "' is not an age; allowed: a number with s, m, h, d or w, as 30d");
    }
    request["older_than_seconds"] = *age;
  }
  if (arguments.has("--all")) request["all"] = true;
  if (request.size() == 1 && !arguments.has("--module")) {
    return usage_error("cache purge: what? --older-than=AGE, --module=PATH or --all");
  }
  if (arguments.has("--all") && (arguments.has("--older-than") || arguments.has("--module"))) {
    return usage_error("cache purge: --all goes with nothing else");
  }
  add_module(arguments, request);
  const Answer answer = ask_once(arguments, request);
  if (answer.status != kSuccess) return answer.status;
  if (arguments.has("--json")) {
    print_json(answer.body);
  } else {
    print(std::to_string(number(answer.body, "removed")) + " images removed, " +
          format_bytes(number(answer.body, "removed_bytes")) + "\n");
  }
  return kSuccess;
}

}  // namespace phybin::client
