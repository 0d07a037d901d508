// See host_tree.h.
#include "client/host_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>

#include "client/connection.h"

namespace phybin::client {
namespace {

constexpr size_t kMostBytes = 64 << 20;

}  // namespace

HostTree::HostTree(std::string root) : root_(std::move(root)) {
  while (!root_.empty() && root_.back() == '/') root_.pop_back();
}

std::optional<std::string> HostTree::read(std::string_view path) const {
  const Descriptor file(open(at(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return {};
  std::string text;
  char buffer[16 << 10];
  while (text.size() < kMostBytes) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::optional<std::string> HostTree::line(std::string_view path) const {
  const std::optional<std::string> text = read(path);
  if (!text) return {};
  return std::string(trim(std::string_view(*text).substr(0, text->find('\n'))));
}

std::optional<uint64_t> HostTree::number(std::string_view path) const {
  const std::optional<std::string> text = line(path);
  return text ? parse_number(*text) : std::nullopt;
}

std::vector<std::string> HostTree::list(std::string_view path) const {
  std::vector<std::string> names;
  DIR* folder = opendir(at(path).c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

bool HostTree::exists(std::string_view path) const {
  struct stat status {};
  return stat(at(path).c_str(), &status) == 0;
}

std::string HostTree::link_name(std::string_view path) const {
  char target[4096];
  const ssize_t length = readlink(at(path).c_str(), target, sizeof target);
  if (length <= 0) return {};
  const std::string text(target, static_cast<size_t>(length));
  return text.substr(text.rfind('/') + 1);
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != text.npos) {
    const size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<uint64_t> parse_number(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace phybin::client
