// See format.h.
#include "client/format.h"

#include <pwd.h>

#include <algorithm>
#include <cstdio>

namespace phybin::client {
namespace {

std::string scaled(uint64_t value, unsigned base, std::string_view units, std::string_view suffix) {
  double rest = static_cast<double>(value);
  size_t unit = 0;
  while (rest >= base && unit + 1 < units.size()) {
    rest /= base;
    ++unit;
  }
  char buffer[48];
  if (unit == 0) {
    snprintf(buffer, sizeof buffer, "%llu", static_cast<unsigned long long>(value));
    return buffer;
  }
  snprintf(buffer, sizeof buffer, "%.1f%c%s", rest, units[unit], suffix.data());
  return buffer;
}

// Columns that text takes on a terminal; UTF-8 continuation bytes take none.
size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string clipped(const std::string& line, size_t width) {
  if (width == 0 || columns(line) <= width) return line;
  std::string out;
  size_t used = 0;
  for (char c : line) {
    if ((c & 0xc0) != 0x80 && ++used > width) break;
    out += c;
  }
  return out;
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  std::string text = scaled(bytes, 1024, " KMGTP", "iB");
  if (text.back() != 'B') return text + " B";
  text.insert(text.size() - 3, " ");
  return text;
}

std::string format_count(uint64_t count) { return scaled(count, 1000, " kMGTP", ""); }

std::string format_duration(uint64_t seconds) {
  const auto with_unit = [](uint64_t value, const char* unit) { return std::to_string(value) + " " + unit; };
  if (seconds < 60) return with_unit(seconds, "s");
  const uint64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (minutes < 60) return with_unit(minutes, "min");
  if (hours < 24) return with_unit(hours, "h") + (minutes % 60 != 0 ? " " + with_unit(minutes % 60, "min") : "");
  return with_unit(days, "d") + (hours % 24 != 0 ? " " + with_unit(hours % 24, "h") : "");
}

std::string format_user(int64_t uid) {
  const passwd* user = getpwuid(static_cast<uid_t>(uid));
  return user != nullptr ? printable(user->pw_name) : std::to_string(uid);
}

std::string printable(std::string_view text) {
  std::string out;
  for (char c : text) out += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  return out;
}

const nlohmann::json& member(const nlohmann::json& object, std::string_view name) {
  static const nlohmann::json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

uint64_t number(const nlohmann::json& object, std::string_view name) {
  const nlohmann::json& value = member(object, name);
  return value.is_number() ? value.get<uint64_t>() : 0;
}

std::string text(const nlohmann::json& object, std::string_view name) {
  const nlohmann::json& value = member(object, name);
  return value.is_string() ? printable(value.get_ref<const std::string&>()) : std::string();
}

bool flag(const nlohmann::json& object, std::string_view name) {
  const nlohmann::json& value = member(object, name);
  return value.is_boolean() && value.get<bool>();
}

Table::Table(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    right_.push_back(title[0] == '>');
    if (right_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(right_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::render(size_t width) const {
  std::vector<size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - columns(row[i]), ' ');
      if (i != 0) line += "  ";
      line += right_[i] ? space + row[i] : row[i] + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += clipped(line, width) + "\n";
  }
  return out;
}

void Listing::add(std::string name, std::string value) { lines_.emplace_back(std::move(name), std::move(value)); }

std::string Listing::render() const {
  size_t width = 0;
  for (const auto& [name, value] : lines_) width = std::max(width, columns(name));
  std::string out;
  for (const auto& [name, value] : lines_) {
    out += name;
    if (!value.empty()) out += ":" + std::string(width + 2 - columns(name), ' ') + value;
    out += "\n";
  }
  return out;
}

void print(const std::string& text) { fwrite(text.data(), 1, text.size(), stdout); }

void print_json(const nlohmann::json& value) {
  print(value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace phybin::client
