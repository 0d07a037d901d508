// Text in the OpenMetrics format, which Prometheus and its relatives read.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace phybin::daemon {

class OpenMetrics {
 public:
  enum class Type { kCounter, kGauge, kInfo };
  using Labels = std::initializer_list<std::pair<const char*, std::string_view>>;

  // Begins a family of samples. `unit` is the end of the name, or empty. Names of counters are given without
  // "_total".
  void family(const char* name, Type type, const char* unit, const char* help);
  // A sample of the family begun last.
  void sample(uint64_t value, Labels labels = {});
  void sample(double value, Labels labels = {});
  // The whole text; nothing is added afterwards.
  std::string finish();

 private:
  void add(const std::string& value, Labels labels);

  std::string text_, name_;
};

}  // namespace phybin::daemon
