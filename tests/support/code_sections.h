// x86_64 code to test with: the executable sections of this machine's programs and libraries.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace phybin::test {

inline constexpr const char* kLibraryFolder = "/lib/x86_64-linux-gnu/";

struct CodeSection {
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
};

// The executable sections of an ELF file; none if it cannot be read.
inline std::vector<CodeSection> code_sections(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
  std::vector<CodeSection> sections;
  Elf64_Ehdr header;
  if (file.size() < sizeof header) return sections;
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_X86_64) return sections;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, file.data() + header.e_shoff + i * sizeof section, sizeof section);
    if ((section.sh_flags & SHF_EXECINSTR) == 0 || section.sh_type != SHT_PROGBITS) continue;
    const char* start = file.data() + section.sh_offset;
    sections.push_back({section.sh_addr, std::vector<uint8_t>(start, start + section.sh_size)});
  }
  return sections;
}

}  // namespace phybin::test
