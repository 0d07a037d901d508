// See age.h.
#include "client/age.h"

#include <charconv>

namespace phybin::client {
namespace {

struct Unit {
  char name;
  uint64_t seconds;
};
constexpr Unit kUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
constexpr uint64_t kMost = 1000000000;

}  // namespace

std::optional<uint64_t> parse_age(const std::string& text) {
  uint64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || value > kMost) return {};
  if (end == last) return value;
  if (end + 1 != last) return {};
  for (const Unit& unit : kUnits) {
    if (*end == unit.name) return value * unit.seconds;
  }
  return {};
}

}  // namespace phybin::client
