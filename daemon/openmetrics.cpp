// See openmetrics.h.
#include "daemon/openmetrics.h"

#include <cstdio>

namespace phybin::daemon {
namespace {

struct TypeName {
  const char* name;
  const char* suffix;  // of samples
};
// By OpenMetrics::Type.
constexpr TypeName kTypes[] = {{"counter", "_total"}, {"gauge", ""}, {"info", "_info"}};

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace

void OpenMetrics::family(const char* name, Type type, const char* unit, const char* help) {
  const TypeName& names = kTypes[static_cast<size_t>(type)];
  const std::string family = name;
  text_ += "# TYPE " + family + " " + names.name + "\n";
  if (*unit != 0) text_ += "# UNIT " + family + " " + unit + "\n";
  text_ += "# HELP " + family + " " + escaped(help) + "\n";
  name_ = family + names.suffix;
}

void OpenMetrics::sample(uint64_t value, Labels labels) { add(std::to_string(value), labels); }

void OpenMetrics::sample(double value, Labels labels) {
  char text[32];
  snprintf(text, sizeof text, "%.3f", value);
  add(text, labels);
}

void OpenMetrics::add(const std::string& value, Labels labels) {
  text_ += name_;
  const char* separator = "{";
  for (const auto& [name, label] : labels) {
    text_ += separator + std::string(name) + "=\"" + escaped(label) + "\"";
    separator = ",";
  }
  if (labels.size() != 0) text_ += "}";
  text_ += " " + value + "\n";
}

std::string OpenMetrics::finish() {
  text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace phybin::daemon
