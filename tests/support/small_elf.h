// A small x86_64 ELF file around given code, for tests that need one whose every byte they know.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace phybin::test {

inline constexpr uint64_t kSmallElfText = 0x1000;  // file offset, and distance from `base`, of the code

struct SmallElf {
  uint16_t type = ET_DYN;
  uint64_t base = 0;
  std::vector<Elf64_Phdr> segments;  // the first is the code's
  std::vector<uint8_t> code;

  explicit SmallElf(std::vector<uint8_t> code_bytes, uint16_t elf_type = ET_DYN)
      : type(elf_type), base(elf_type == ET_DYN ? 0 : 0x400000), code(std::move(code_bytes)) {
    add(PT_LOAD, PF_R | PF_X, kSmallElfText, kSmallElfText, code.size());
  }

  Elf64_Phdr& add(uint32_t segment_type, uint32_t flags, uint64_t offset, uint64_t address, uint64_t size) {
    Elf64_Phdr phdr = {};
    phdr.p_type = segment_type;
    phdr.p_flags = flags;
    phdr.p_offset = offset;
    phdr.p_vaddr = phdr.p_paddr = base + address;
    phdr.p_filesz = phdr.p_memsz = size;
    phdr.p_align = 0x1000;
    segments.push_back(phdr);
    return segments.back();
  }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> file(kSmallElfText + code.size());
    Elf64_Ehdr header = {};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = type;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_entry = base + kSmallElfText;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = static_cast<uint16_t>(segments.size());
    memcpy(file.data(), &header, sizeof header);
    memcpy(file.data() + sizeof header, segments.data(), segments.size() * sizeof(Elf64_Phdr));
    memcpy(file.data() + kSmallElfText, code.data(), code.size());
    return file;
  }
};

}  // namespace phybin::test
