// The files in which a machine tells what it is: /proc, /sys, /etc. Below another folder than / they are those of a
// tree recorded elsewhere, which is how a machine is looked at from afar, and how the checks are tested.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phybin::client {

class HostTree {
 public:
  // `root`: "" or "/" is this machine.
  explicit HostTree(std::string root);

  bool recorded() const { return !root_.empty(); }
  // Where `path`, which begins with a slash, really is.
  std::string at(std::string_view path) const { return root_ + std::string(path); }

  // Content of a file, at most its first 64 MiB. None: it cannot be read, errno says why.
  std::optional<std::string> read(std::string_view path) const;
  // Its first line without the end, and without blanks around it.
  std::optional<std::string> line(std::string_view path) const;
  // An unsigned number, decimal or with 0x.
  std::optional<uint64_t> number(std::string_view path) const;
  // Names in a folder, sorted; none where there is no such folder.
  std::vector<std::string> list(std::string_view path) const;
  bool exists(std::string_view path) const;
  // Last part of where a symbolic link points; empty if it is none.
  std::string link_name(std::string_view path) const;

 private:
  std::string root_;
};

// The words of a text, separated by blanks.
std::vector<std::string> split_words(std::string_view text);
std::vector<std::string> split_lines(std::string_view text);
std::string_view trim(std::string_view text);
// Decimal, or hexadecimal with 0x; nothing else around it.
std::optional<uint64_t> parse_number(std::string_view text);

}  // namespace phybin::client
