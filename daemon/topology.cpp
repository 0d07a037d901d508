// See topology.h.
#include "daemon/topology.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace phybin::daemon {
namespace {

constexpr unsigned kMaxCpu = 65535;

bool parse_unsigned(std::string_view text, unsigned& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<unsigned> parse_cpu_list(std::string_view text) {
  std::vector<unsigned> cpus;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const size_t dash = part.find('-');
    unsigned first = 0, last = 0;
    if (!parse_unsigned(part.substr(0, dash), first)) continue;
    last = first;
    if (dash != part.npos && !parse_unsigned(part.substr(dash + 1), last)) continue;
    if (last > kMaxCpu) continue;
    for (unsigned cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

unsigned Topology::node_of(unsigned cpu) const {
  for (unsigned node = 0; node != cpus.size(); ++node) {
    if (std::binary_search(cpus[node].begin(), cpus[node].end(), cpu)) return node;
  }
  return 0;
}

Topology read_topology(const std::string& directory) {
  std::vector<std::pair<unsigned, std::vector<unsigned>>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    unsigned id = 0;
    if (!name.starts_with("node") || !parse_unsigned(std::string_view(name).substr(4), id)) continue;
    std::ifstream file(entry.path() / "cpulist");
    std::string line;
    std::getline(file, line);
    std::vector<unsigned> cpus = parse_cpu_list(line);
    std::sort(cpus.begin(), cpus.end());
    if (!cpus.empty()) found.emplace_back(id, std::move(cpus));
  }
  std::sort(found.begin(), found.end());
  Topology topology;
  for (auto& [id, cpus] : found) {
    topology.ids.push_back(id);
    topology.cpus.push_back(std::move(cpus));
  }
  if (topology.cpus.empty()) {
    topology.ids.push_back(0);
    topology.cpus.emplace_back();
  }
  return topology;
}

}  // namespace phybin::daemon
