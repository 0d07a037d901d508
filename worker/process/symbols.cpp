// See symbols.h. Symbol tables are read with every offset checked: the file may be anything.
#include "worker/process/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace phybin::process {
namespace {

std::string read_file(const char* path) {
  std::string text;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[16384];
  for (ssize_t count; (count = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(count));
  close(fd);
  return text;
}

template <typename T>
bool get(const std::string& file, uint64_t offset, T& out) {
  if (offset > file.size() || file.size() - offset < sizeof out) return false;
  memcpy(&out, file.data() + offset, sizeof out);
  return true;
}

}  // namespace

void Modules::refresh() {
  modules_.clear();
  const std::string maps = read_file("/proc/self/maps");
  for (size_t at = 0; at < maps.size();) {
    const size_t newline = std::min(maps.find('\n', at), maps.size());
    const std::string line = maps.substr(at, newline - at);
    at = newline + 1;
    uint64_t start, end;
    int path_at = 0;
    if (sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &path_at) < 2 || line[path_at] != '/')
      continue;
    const std::string path = line.substr(static_cast<size_t>(path_at));
    if (!modules_.empty() && modules_.back().path == path) {
      modules_.back().end = end;
    } else {
      modules_.push_back({start, end, path});
    }
  }
}

const Module* Modules::find(uint64_t address) {
  for (const bool fresh : {false, true}) {
    if (fresh) refresh();
    for (const Module& module : modules_) {
      if (address >= module.start && address < module.end) return &module;
    }
  }
  return nullptr;
}

AddressRange find_function(const Module& module, const std::string& name) {
  const std::string file = read_file(module.path.c_str());
  Elf64_Ehdr header;
  if (!get(file, 0, header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table, names;
    if (!get(file, header.e_shoff + i * sizeof table, table)) return {};
    if (table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) continue;
    if (!get(file, header.e_shoff + table.sh_link * sizeof names, names)) return {};
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!get(file, table.sh_offset + at, symbol)) return {};
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      const uint64_t name_at = names.sh_offset + symbol.st_name;
      if (name_at >= file.size() || file.compare(name_at, name.size() + 1, name.c_str(), name.size() + 1) != 0)
        continue;
      const uint64_t base = header.e_type == ET_DYN ? module.start : 0;
      return {base + symbol.st_value, base + symbol.st_value + std::max<uint64_t>(symbol.st_size, 1)};
    }
  }
  return {};
}

}  // namespace phybin::process
