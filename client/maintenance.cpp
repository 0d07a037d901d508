// phybinctl maintenance: what phybin-maintenance.service runs each week. Every image is verified; those that can
// serve nobody any more are removed, and the folders that killed translators left in /tmp (leftovers.h).
//
// What runs is not disturbed: workers keep the images that they have mapped, and an image that was removed without
// need is made again.
#include <chrono>
#include <ctime>
#include <map>
#include <optional>

#include "client/age.h"
#include "client/bounded.h"
#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"
#include "client/leftovers.h"
#include "client/module_state.h"
#include "client/progress.h"

namespace phybin::client {
namespace {

// An image whose module changed where this machine sees it may serve a container that has the old one at the same
// path; it goes when nobody used it for so long.
constexpr uint64_t kStaleSeconds = 7 * 86400;
// Ids in a request, so that it fits into a message.
constexpr size_t kIdsAtOnce = 2000;
// For one file in a folder that is removed, or one process.
constexpr auto kLeftoverPatience = std::chrono::seconds(20);

struct Plan {
  uint64_t image_age = 90 * 86400;  // seconds
  LeftoverRules leftovers;
};

// Why an image is removed.
enum class Cause { kNone, kBuild, kChanged, kGone, kAge };
constexpr const char* kCauseNames[] = {"", "other_build", "module_changed", "module_gone", "unused"};

// What was done about the images.
struct ImageWork {
  int status = kSuccess;
  std::string error;
  uint64_t verified = 0, removed = 0, removed_bytes = 0;
  Json damaged = Json::array();
  std::map<std::string, uint64_t> causes;
};

Cause cause_of(const Json& image, const Json& build, uint64_t age_limit, ModuleStates& states) {
  const auto now = static_cast<uint64_t>(time(nullptr));
  const uint64_t used = std::max(number(image, "used_at"), number(image, "created_at"));
  const uint64_t unused = now > used ? now - used : 0;
  // Workers of another build would have their own daemon.
  if (build.is_string() && member(image, "translator_build") != build) return Cause::kBuild;
  if (unused >= age_limit) return Cause::kAge;
  if (unused < kStaleSeconds) return Cause::kNone;
  switch (states.state_of(text(image, "module"), text(image, "module_sha256"), number(image, "created_at"))) {
    case ModuleState::kGone:
      return Cause::kGone;
    case ModuleState::kChanged:
      return Cause::kChanged;
    default:
      return Cause::kNone;
  }
}

// False: the daemon refused or is gone.
bool ask(Connection& connection, const Json& request, ImageWork& work, Json& body,
         const ProgressFunction& progress = {}) {
  Answer answer = connection.ask(request, {}, progress);
  work.status = answer.status;
  work.error = answer.error;
  body = std::move(answer.body);
  return answer.status == kSuccess;
}

bool verify(Connection& connection, ImageWork& work) {
  Progress progress("verifying image");
  Json body;
  const auto show = [&](const Json& state) {
    progress.show(number(state, "done"), number(state, "total"), text(state, "what"));
  };
  if (!ask(connection, {{"request", "cache-verify"}}, work, body, show)) return false;
  work.verified = number(body, "verified");
  if (member(body, "problems").is_array()) work.damaged = body["problems"];
  return true;
}

bool purge(Connection& connection, const Plan& plan, ImageWork& work) {
  Json status, list;
  if (!ask(connection, {{"request", "status"}}, work, status)) return false;
  if (!ask(connection, {{"request", "cache-list"}}, work, list)) return false;
  const Json& images = member(list, "images");
  const Json& build = member(status, "translator_build");
  ModuleStates states;
  std::vector<Json> requests;
  uint64_t done = 0;
  {
    Progress progress("looking at image");
    for (const Json& image : images) {
      progress.show(done++, images.size(), text(image, "module"));
      const Cause cause = cause_of(image, build, plan.image_age, states);
      if (cause == Cause::kNone) continue;
      ++work.causes[kCauseNames[static_cast<size_t>(cause)]];
      if (plan.leftovers.dry_run) {
        ++work.removed;
        work.removed_bytes += number(image, "bytes");
        continue;
      }
      if (requests.empty() || requests.back()["ids"].size() == kIdsAtOnce) {
        requests.push_back({{"request", "cache-purge"}, {"ids", Json::array()}});
      }
      requests.back()["ids"].push_back(member(image, "id"));
    }
  }
  for (const Json& request : requests) {
    Json answer;
    if (!ask(connection, request, work, answer)) return false;
    work.removed += number(answer, "removed");
    work.removed_bytes += number(answer, "removed_bytes");
  }
  return true;
}

ImageWork work_on_images(const Arguments& arguments, const Plan& plan) {
  ImageWork work;
  Connection connection;
  work.status = connection.open(arguments, work.error);
  if (work.status != kSuccess) return work;
  // Verifying removes what is damaged.
  if (!plan.leftovers.dry_run && !verify(connection, work)) return work;
  purge(connection, plan, work);
  return work;
}

void print_images(const ImageWork& work, bool dry_run) {
  for (const Json& problem : work.damaged) {
    print("image " + std::to_string(number(problem, "id")) + ": " + printable(text(problem, "problem")) +
          ": removed\n");
  }
  if (work.status != kSuccess) return;
  std::string causes;
  for (const auto& [name, count] : work.causes) {
    causes += (causes.empty() ? " (" : ", ") + name + " " + std::to_string(count);
  }
  if (!causes.empty()) causes += ")";
  if (!dry_run) {
    print(std::to_string(work.verified) + " images verified, " + std::to_string(work.damaged.size()) + " damaged\n");
  }
  print(std::to_string(work.removed) + (dry_run ? " images would be removed, " : " images removed, ") +
        format_bytes(work.removed_bytes) + causes + "\n");
}

void print_leftovers(const Json& leftovers, const LeftoverRules& rules) {
  uint64_t removed = 0, bytes = 0;
  for (const Json& leftover : leftovers) {
    if (flag(leftover, "removed")) {
      ++removed;
      bytes += number(leftover, "bytes");
    } else {
      print(printable(rules.folder) + "/" + text(leftover, "name") + " stays: " + text(leftover, "reason") + "\n");
    }
  }
  print(std::to_string(removed) +
        (rules.dry_run ? " left-over folders would be removed, " : " left-over folders removed, ") +
        format_bytes(bytes) + "\n");
}

Json to_json(const ImageWork& work) {
  return {{"error", work.error.empty() ? Json(nullptr) : Json(work.error)},
          {"verified", work.verified},
          {"damaged", work.damaged},
          {"removed", work.removed},
          {"removed_bytes", work.removed_bytes},
          {"causes", work.causes}};
}

// Names of files need not be UTF-8.
std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json to_json(const std::vector<Leftover>& leftovers) {
  Json list = Json::array();
  for (const Leftover& leftover : leftovers) {
    list.push_back({{"name", leftover.name},
                    {"removed", leftover.removed},
                    {"failed", leftover.failed},
                    {"reason", leftover.reason.empty() ? Json(nullptr) : Json(leftover.reason)},
                    {"files", leftover.files},
                    {"bytes", leftover.bytes}});
  }
  return list;
}

// As JSON; `problem` as of clean_leftovers(). A process may use a file of a dead server, and then not even the look
// at it comes back.
Json clean_bounded(const LeftoverRules& rules, std::string& problem) {
  Progress progress("looking at folder");
  const std::optional<std::string> answer = run_bounded(
      kLeftoverPatience,
      [&](const Tell& tell) {
        std::string found;
        const auto leftovers = clean_leftovers(
            rules,
            [&](uint64_t done, uint64_t total, const std::string& name) {
              tell(dump({{"done", done}, {"total", total}, {"name", name}}));
            },
            [&] { tell({}); }, found);
        return dump({{"leftovers", to_json(leftovers)}, {"problem", found}});
      },
      [&](const std::string& told) {
        if (told.empty()) return;
        const Json state = Json::parse(told, nullptr, false);
        progress.show(number(state, "done"), number(state, "total"), text(state, "name"));
      });
  const Json result = Json::parse(answer.value_or(""), nullptr, false);
  problem = answer ? text(result, "problem")
                   : rules.folder + ": looking at it, and at what processes use, takes too long: not cleaned up";
  const Json& leftovers = member(result, "leftovers");
  return leftovers.is_array() ? leftovers : Json::array();
}

// The value of an option that is an age; false if it is none.
bool read_age(const Arguments& arguments, const char* name, uint64_t& age) {
  if (!arguments.has(name)) return true;
  const std::optional<uint64_t> given = parse_age(arguments.get(name));
  if (given) age = *given;
  return given.has_value();
}

}  // namespace

int run_maintenance(const Arguments& arguments) {
  Plan plan;
  plan.leftovers.dry_run = arguments.has("--dry-run");
  plan.leftovers.folder = arguments.get("--tmp", plan.leftovers.folder);
  for (const auto& [name, age] :
       {std::pair("--older-than", &plan.image_age), std::pair("--tmp-older-than", &plan.leftovers.least_age)}) {
    if (!read_age(arguments, name, *age)) {
      return usage_error(std::string(name) + ": '" + arguments.get(name) + "' is not an age; " + kAgeHelp);
    }
  }
  ImageWork work;
  const bool images = !arguments.has("--tmp-only");
  if (images) work = work_on_images(arguments, plan);
  std::string problem;
  const Json leftovers = clean_bounded(plan.leftovers, problem);
  bool failed = !problem.empty();
  for (const Json& leftover : leftovers) failed |= flag(leftover, "failed");
  if (arguments.has("--json")) {
    Json answer{{"dry_run", plan.leftovers.dry_run}, {"leftovers", leftovers}};
    answer["images"] = images ? to_json(work) : Json(nullptr);
    print_json(answer);
  } else {
    if (images) print_images(work, plan.leftovers.dry_run);
    print_leftovers(leftovers, plan.leftovers);
  }
  if (!problem.empty()) failure(problem);
  if (!work.error.empty()) failure(work.error);
  if (work.status != kSuccess) return work.status;
  return failed ? kFailure : kSuccess;
}

}  // namespace phybin::client
