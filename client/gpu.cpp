// phybinctl gpu: memory of the graphics and compute cards, how scattered what is free of it is, and who holds it.
// Everything comes from files of the kernel; no driver is called, so a card that hangs does not make this hang.
#include <charconv>
#include <cmath>

#include "client/commands.h"
#include "client/connection.h"
#include "client/format.h"
#include "client/gpu_memory.h"

namespace phybin::client {
namespace {

struct Kind {
  const char* name;  // of its files, and in JSON
  const char* title;
};
constexpr Kind kKinds[] = {{"vram", "VRAM"}, {"vis_vram", "VRAM visible to the CPU"}, {"gtt", "GTT"}};

std::string whole_percent(double value) { return std::to_string(std::lround(value)) + " %"; }

std::string hex(uint64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%04llx", static_cast<unsigned long long>(value));
  return text;
}

Json describe(const HostTree& host, const GpuCard& card, const std::vector<Holder>& holders, double limit) {
  Json json{{"name", card.name},          {"pci", card.pci},
            {"vendor", hex(card.vendor)}, {"device", hex(card.device)},
            {"driver", card.driver},      {"product", host.line(card.folder + "/product_name").value_or("")}};
  Json warnings = Json::array();
  for (const Kind& kind : kKinds) {
    const std::optional<MemoryUse> use = memory_use(host, card, kind.name);
    if (!use) {
      json[kind.name] = nullptr;
      continue;
    }
    json[kind.name] = {{"total_bytes", use->total}, {"used_bytes", use->used}};
    if (use->total != 0 && use->percent() >= limit) {
      warnings.push_back(std::string(kind.title) + " is used to " + whole_percent(use->percent()));
    }
  }
  const std::optional<Fragmentation> scattered = fragmentation(host, card);
  json["fragmentation"] = nullptr;
  if (scattered) {
    json["fragmentation"] = {{"free_bytes", scattered->free},
                             {"small_pieces_bytes", scattered->small},
                             {"piece_bytes", kPieceBytes},
                             {"largest_piece_bytes", scattered->largest}};
  }
  json["processes"] = Json::array();
  for (const Holder& holder : holders) {
    json["processes"].push_back({{"pid", holder.pid},
                                 {"uid", holder.uid ? Json(*holder.uid) : Json(nullptr)},
                                 {"program", holder.program},
                                 {"vram_bytes", holder.vram},
                                 {"gtt_bytes", holder.gtt}});
  }
  json["warnings"] = std::move(warnings);
  return json;
}

std::string fragmentation_text(const Json& scattered) {
  if (!scattered.is_object()) return "not told (root can read it, where debugfs is mounted)";
  const uint64_t free = number(scattered, "free_bytes"), small = number(scattered, "small_pieces_bytes");
  if (free == 0) return "nothing is free";
  return whole_percent(100.0 * static_cast<double>(small) / static_cast<double>(free)) + " of " + format_bytes(free) +
         " free VRAM is in pieces under " + format_bytes(kPieceBytes) + ", the largest has " +
         format_bytes(number(scattered, "largest_piece_bytes"));
}

std::string render(const Json& card) {
  std::string out = text(card, "name") + ": " + text(card, "vendor") + ":" + text(card, "device");
  for (const char* name : {"pci", "driver", "product"}) {
    if (const std::string value = text(card, name); !value.empty()) out += ", " + printable(value);
  }
  out += "\n";
  Listing list;
  for (const Kind& kind : kKinds) {
    const Json& use = member(card, kind.name);
    const MemoryUse memory{number(use, "total_bytes"), number(use, "used_bytes")};
    list.add(kind.title, use.is_object() ? format_bytes(memory.used) + " of " + format_bytes(memory.total) + " (" +
                                               whole_percent(memory.percent()) + ")"
                                         : "not told");
  }
  list.add("fragmentation", fragmentation_text(member(card, "fragmentation")));
  for (const Json& warning : member(card, "warnings")) list.add("warning", warning.get<std::string>());
  out += list.render();
  Table table({">PID", "USER", "PROGRAM", ">VRAM", ">GTT"});
  for (const Json& process : member(card, "processes")) {
    const Json& uid = member(process, "uid");
    table.add({std::to_string(number(process, "pid")), uid.is_number() ? format_user(uid.get<int64_t>()) : "-",
               text(process, "program"), format_bytes(number(process, "vram_bytes")),
               format_bytes(number(process, "gtt_bytes"))});
  }
  if (!table.empty()) out += table.render();
  return out;
}

}  // namespace

int run_gpu(const Arguments& arguments) {
  const HostTree host(arguments.get("--root"));
  if (host.recorded() && !host.exists("/")) return usage_error("--root: " + host.at("") + " is not a folder");
  const std::string given = arguments.get("--warn", "90");
  double limit = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), limit);
  if (error != std::errc() || end != given.data() + given.size() || !(limit > 0 && limit <= 100)) {
    return usage_error("--warn: '" + given + "' is not a percentage; allowed: above 0, to 100");
  }
  const std::map<std::string, std::vector<Holder>> holders = memory_holders(host);
  Json cards = Json::array();
  bool warned = false;
  for (const GpuCard& card : find_cards(host)) {
    const auto found = holders.find(card.pci);
    cards.push_back(describe(host, card, found == holders.end() ? std::vector<Holder>() : found->second, limit));
    warned |= !cards.back()["warnings"].empty();
  }
  if (arguments.has("--json")) {
    print_json({{"cards", std::move(cards)}, {"warn_percent", limit}});
  } else if (cards.empty()) {
    print("no graphics card\n");
  } else {
    for (size_t i = 0; i < cards.size(); ++i) print((i == 0 ? "" : "\n") + render(cards[i]));
  }
  return warned ? kFailure : kSuccess;
}

}  // namespace phybin::client
