// See gpu_cards.h.
#include "client/gpu_cards.h"

#include <algorithm>

namespace phybin::client {
namespace {

constexpr char kCards[] = "/sys/class/drm";
constexpr char kPci[] = "/sys/bus/pci/devices";
constexpr uint64_t kAmd = 0x1002;

// The number of "cardN"; connectors ("card0-HDMI-A-1") and render nodes are something else.
std::optional<uint64_t> card_number(const std::string& name) {
  return name.starts_with("card") ? parse_number(std::string_view(name).substr(4)) : std::nullopt;
}

// Class codes: display controllers, and processing accelerators as compute-only cards are.
bool computes(uint64_t pci_class) { return pci_class >> 16 == 0x03 || pci_class >> 16 == 0x12; }

}  // namespace

std::vector<GpuCard> find_cards(const HostTree& host) {
  std::vector<GpuCard> cards;
  for (const std::string& name : host.list(kCards)) {
    if (!card_number(name)) continue;
    GpuCard card;
    card.name = name;
    card.folder = std::string(kCards) + "/" + name + "/device";
    if (!host.exists(card.folder)) continue;  // vgem and other drivers without a device
    card.vendor = host.number(card.folder + "/vendor").value_or(0);
    card.device = host.number(card.folder + "/device").value_or(0);
    card.driver = host.link_name(card.folder + "/driver");
    for (const std::string& whole : split_lines(host.read(card.folder + "/uevent").value_or(""))) {
      const std::string_view line = whole;
      if (line.starts_with("PCI_SLOT_NAME=")) card.pci = trim(line.substr(14));
      if (line.starts_with("DRIVER=") && card.driver.empty()) card.driver = trim(line.substr(7));
    }
    cards.push_back(std::move(card));
  }
  std::sort(cards.begin(), cards.end(),
            [](const GpuCard& a, const GpuCard& b) { return *card_number(a.name) < *card_number(b.name); });
  return cards;
}

bool has_amd_gpu(const HostTree& host) {
  const std::vector<GpuCard> cards = find_cards(host);
  if (std::any_of(cards.begin(), cards.end(), [](const GpuCard& card) { return card.is_amd(); })) return true;
  const std::vector<std::string> devices = host.list(kPci);
  return std::any_of(devices.begin(), devices.end(), [&](const std::string& address) {
    const std::string folder = std::string(kPci) + "/" + address;
    return host.number(folder + "/vendor") == kAmd && computes(host.number(folder + "/class").value_or(0));
  });
}

}  // namespace phybin::client
