// See gpu_memory.h.
#include "client/gpu_memory.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>

namespace phybin::client {
namespace {

constexpr uint64_t kPage = 4096;  // of the old list of the driver, whatever the CPU's pages are
constexpr char kKfd[] = "/sys/class/kfd/kfd";

// "123", "123KiB", "123 MiB": bytes.
std::optional<uint64_t> parse_size(std::string_view text) {
  text = trim(text);
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> value = parse_number(text.substr(0, end));
  const std::string_view unit = trim(text.substr(end));
  if (!value) return {};
  if (unit.empty()) return value;
  if (unit == "KiB") return *value << 10;
  if (unit == "MiB") return *value << 20;
  return {};
}

// What stands behind `name` up to a comma or the line's end.
std::string_view field(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  if (at == line.npos) return {};
  const std::string_view rest = line.substr(at + name.size());
  return rest.substr(0, rest.find(','));
}

void add_piece(Fragmentation& result, uint64_t piece, uint64_t bytes) {
  result.free += bytes;
  if (piece < kPieceBytes) result.small += bytes;
  if (bytes != 0) result.largest = std::max(result.largest, piece);
}

// Since Linux 5.19 a buddy allocator's: "chunk_size: 4KiB, ...", then "order-9 free: 12MiB, blocks: 6" ("pages" in
// the first versions). Before that a list: "0x00..-0x00..: 256: free", in pages.
std::optional<Fragmentation> parse_fragmentation(std::string_view text) {
  Fragmentation result;
  uint64_t chunk = 0;
  bool any = false;
  for (const std::string& whole : split_lines(text)) {
    const std::string_view line = whole;
    if (line.find("chunk_size:") != line.npos) chunk = parse_size(field(line, "chunk_size:")).value_or(0);
    if (const size_t order_at = line.find("order-"); order_at != line.npos && chunk != 0) {
      const std::string_view rest = trim(line.substr(order_at + 6));
      const auto order = parse_number(rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size())));
      std::string_view count = field(line, "blocks:");
      if (count.empty()) count = field(line, "pages:");
      const auto blocks = parse_number(trim(count));
      if (!order || *order > 40 || !blocks) continue;
      any = true;
      add_piece(result, chunk << *order, *blocks * (chunk << *order));
    } else if (line.starts_with("0x") && line.ends_with(": free")) {
      const size_t colon = line.find(": ");
      const auto pages = parse_number(line.substr(colon + 2, line.size() - 6 - colon - 2));
      if (!pages) continue;
      any = true;
      add_piece(result, *pages * kPage, *pages * kPage);
    } else if (line.starts_with("0x") && line.ends_with(": used")) {
      any = true;
    }
  }
  return any ? std::optional(result) : std::nullopt;
}

// PCI addresses by the number that the compute driver gives a card.
std::map<std::string, std::string> kfd_cards(const HostTree& host) {
  std::map<std::string, std::string> cards;
  const std::string nodes = std::string(kKfd) + "/topology/nodes";
  for (const std::string& node : host.list(nodes)) {
    const std::optional<std::string> id = host.line(nodes + "/" + node + "/gpu_id");
    if (!id || *id == "0") continue;  // 0: a node of CPUs
    uint64_t domain = 0, location = 0;
    for (const std::string& whole : split_lines(host.read(nodes + "/" + node + "/properties").value_or(""))) {
      const std::string_view line = whole;
      if (line.starts_with("domain ")) domain = parse_number(trim(line.substr(7))).value_or(0);
      if (line.starts_with("location_id ")) location = parse_number(trim(line.substr(12))).value_or(0);
    }
    char address[32];
    snprintf(address, sizeof address, "%04x:%02x:%02x.%x", static_cast<unsigned>(domain),
             static_cast<unsigned>(location >> 8 & 0xff), static_cast<unsigned>(location >> 3 & 0x1f),
             static_cast<unsigned>(location & 7));
    cards[*id] = address;
  }
  return cards;
}

struct Held {
  uint64_t vram = 0, gtt = 0;
};
// By PCI address.
using HeldBy = std::map<std::string, Held>;

// Descriptors that came of one opening (dup, fork) name the same client and count once.
HeldBy held_by_descriptors(const HostTree& host, const std::string& process) {
  HeldBy held;
  std::set<std::pair<std::string, std::string>> seen;
  for (const std::string& number : host.list(process + "/fdinfo")) {
    const std::string link = host.link_name(process + "/fd/" + number);
    if (!link.empty() && !link.starts_with("renderD") && !link.starts_with("card")) continue;
    std::string card, client;
    Held one;
    for (const std::string& whole : split_lines(host.read(process + "/fdinfo/" + number).value_or(""))) {
      const std::string_view line = whole;
      const size_t colon = line.find(':');
      if (colon == line.npos || !line.starts_with("drm-")) continue;
      const std::string_view name = line.substr(0, colon), value = trim(line.substr(colon + 1));
      if (name == "drm-pdev") card = value;
      if (name == "drm-client-id") client = value;
      // "drm-memory-" is amdgpu's older name of what "drm-resident-" says.
      if (name == "drm-memory-vram" || name == "drm-resident-vram") one.vram = parse_size(value).value_or(0);
      if (name == "drm-memory-gtt" || name == "drm-resident-gtt") one.gtt = parse_size(value).value_or(0);
    }
    if (card.empty() || !seen.emplace(card, client).second) continue;
    held[card].vram += one.vram;
    held[card].gtt += one.gtt;
  }
  return held;
}

Holder describe(const HostTree& host, const std::string& pid, const Held& held) {
  Holder holder;
  holder.pid = parse_number(pid).value_or(0);
  holder.program = host.line("/proc/" + pid + "/comm").value_or("");
  for (const std::string& whole : split_lines(host.read("/proc/" + pid + "/status").value_or(""))) {
    const std::string_view line = whole;
    if (!line.starts_with("Uid:")) continue;
    const std::vector<std::string> ids = split_words(line.substr(4));
    if (!ids.empty()) holder.uid = parse_number(ids[0]);
  }
  holder.vram = held.vram;
  holder.gtt = held.gtt;
  return holder;
}

}  // namespace

std::optional<MemoryUse> memory_use(const HostTree& host, const GpuCard& card, const std::string& kind) {
  const auto total = host.number(card.folder + "/mem_info_" + kind + "_total");
  const auto used = host.number(card.folder + "/mem_info_" + kind + "_used");
  if (!total || !used) return {};
  return MemoryUse{*total, *used};
}

std::optional<Fragmentation> fragmentation(const HostTree& host, const GpuCard& card) {
  // By number, and on newer kernels by PCI address.
  for (const std::string& name : {card.name.substr(4), card.pci}) {
    if (name.empty()) continue;
    const auto text = host.read("/sys/kernel/debug/dri/" + name + "/amdgpu_vram_mm");
    if (text) return parse_fragmentation(*text);
  }
  return {};
}

std::map<std::string, std::vector<Holder>> memory_holders(const HostTree& host) {
  std::map<std::string, HeldBy> by_process;
  for (const std::string& pid : host.list("/proc")) {
    if (!parse_number(pid)) continue;
    if (HeldBy held = held_by_descriptors(host, "/proc/" + pid); !held.empty()) by_process[pid] = std::move(held);
  }
  // The compute driver's figure holds what descriptors do not show, and is the larger one then.
  const std::map<std::string, std::string> cards = kfd_cards(host);
  const std::string processes = std::string(kKfd) + "/proc";
  for (const std::string& pid : host.list(processes)) {
    for (const auto& [id, address] : cards) {
      const auto bytes = host.number(processes + "/" + pid + "/vram_" + id);
      if (!bytes) continue;
      uint64_t& vram = by_process[pid][address].vram;
      vram = std::max(vram, *bytes);
    }
  }
  std::map<std::string, std::vector<Holder>> holders;
  for (const auto& [pid, held_by] : by_process) {
    for (const auto& [address, held] : held_by) holders[address].push_back(describe(host, pid, held));
  }
  for (auto& [address, list] : holders) {
    std::sort(list.begin(), list.end(), [](const Holder& a, const Holder& b) {
      return std::tuple(b.vram, b.gtt, a.pid) < std::tuple(a.vram, a.gtt, b.pid);
    });
  }
  return holders;
}

}  // namespace phybin::client
