// Numbers, times and tables for people. Programs get the same facts unrounded with --json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace phybin::client {

// "512 B", "1.4 MiB".
std::string format_bytes(uint64_t bytes);
// "999", "12.3k", "4.5M": decimal, for counters.
std::string format_count(uint64_t count);
// "4 s", "3 min", "2 h 5 min", "12 d 3 h".
std::string format_duration(uint64_t seconds);
// Of the user, or the number where it has no name.
std::string format_user(int64_t uid);
// Text of others: control characters would steer the terminal.
std::string printable(std::string_view text);

// Members of what the daemon sent, which may be of another version: what is missing is 0 or "".
uint64_t number(const nlohmann::json& object, std::string_view name);
std::string text(const nlohmann::json& object, std::string_view name);
bool flag(const nlohmann::json& object, std::string_view name);
const nlohmann::json& member(const nlohmann::json& object, std::string_view name);  // null where there is none

// Columns that are as wide as they need to be. Numbers are put to the right.
class Table {
 public:
  // A title that begins with '>' is that of a column put to the right.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> cells);
  // Lines, each no longer than `width` if that is not 0.
  std::string render(size_t width = 0) const;
  bool empty() const { return rows_.size() == 1; }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

// "name:   value" lines.
class Listing {
 public:
  void add(std::string name, std::string value);
  std::string render() const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

// Writes to stdout; a JSON value as indented text.
void print(const std::string& text);
void print_json(const nlohmann::json& value);

}  // namespace phybin::client
