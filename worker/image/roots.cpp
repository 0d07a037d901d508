// See roots.h; field names are those of the System V ABI and its x86_64 supplement, and of the Linux Standard Base
// for the unwind tables.
#include "worker/image/roots.h"

#include <elf.h>

#include <cstring>

namespace phybin::image {
namespace {

template <typename T>
bool read_at(const Module& module, uint64_t offset, T& value) {
  if (offset > module.size || sizeof value > module.size - offset) return false;
  memcpy(&value, module.file + offset, sizeof value);
  return true;
}

template <typename T>
bool read_loaded(const Module& module, uint64_t address, T& value) {
  const uint8_t* bytes = module.loaded(address, sizeof value);
  if (bytes != nullptr) memcpy(&value, bytes, sizeof value);
  return bytes != nullptr;
}

class Finder {
 public:
  explicit Finder(const Module& module) : module_(module), work_left_(module.size) {}

  std::vector<uint64_t> run() {
    add(module_.entry);
    read_symbols();
    read_dynamic();
    read_frames();
    // Position-independent modules have a relocation for each pointer.
    if (!module_.position_independent) read_pointers();
    return std::move(roots_);
  }

 private:
  // Tables may overlap, so that a small file could mean a lot of work; files as linkers write them need less than
  // this.
  bool may_go_on() { return work_left_ != 0 && work_left_-- != 0; }

  void add(uint64_t address) {
    if (module_.in_text(address)) roots_.push_back(address);
  }

  void add_word_at(uint64_t address) {
    uint64_t word;
    if (read_loaded(module_, address, word)) add(word);
  }

  void read_symbols() {
    Elf64_Ehdr header;
    if (!read_at(module_, 0, header) || header.e_shentsize != sizeof(Elf64_Shdr)) return;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
      Elf64_Shdr section;
      if (!read_at(module_, header.e_shoff + uint64_t{i} * sizeof section, section)) return;
      if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
      Elf64_Sym symbol;
      for (uint64_t at = 0; at + sizeof symbol <= section.sh_size && may_go_on(); at += sizeof symbol) {
        if (!read_at(module_, section.sh_offset + at, symbol)) break;
        // Labels of hand-written code often have no type.
        const unsigned type = ELF64_ST_TYPE(symbol.st_info);
        if (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) add(symbol.st_value);
      }
    }
  }

  void read_dynamic() {
    uint64_t rela = 0, rela_bytes = 0, plt = 0, plt_bytes = 0, relr = 0, relr_bytes = 0;
    Elf64_Dyn entry;
    for (uint64_t at = 0; at + sizeof entry <= module_.dynamic_bytes; at += sizeof entry) {
      if (!read_at(module_, module_.dynamic_offset + at, entry) || entry.d_tag == DT_NULL) break;
      const uint64_t value = entry.d_un.d_val;
      constexpr int64_t kRelr = 36, kRelrSize = 35;  // DT_RELR, DT_RELRSZ; older headers lack them
      switch (entry.d_tag) {
        case DT_INIT:
        case DT_FINI:
          add(value);
          break;
        case DT_RELA:
          rela = value;
          break;
        case DT_RELASZ:
          rela_bytes = value;
          break;
        case DT_JMPREL:
          plt = value;
          break;
        case DT_PLTRELSZ:
          plt_bytes = value;
          break;
        case DT_SYMTAB:
          symbols_ = value;
          break;
        case kRelr:
          relr = value;
          break;
        case kRelrSize:
          relr_bytes = value;
          break;
        default:
          break;
      }
    }
    read_relocations(rela, rela_bytes);
    read_relocations(plt, plt_bytes);
    read_packed_relocations(relr, relr_bytes);
  }

  void read_relocations(uint64_t table, uint64_t bytes) {
    Elf64_Rela relocation;
    for (uint64_t at = 0; at + sizeof relocation <= bytes && may_go_on(); at += sizeof relocation) {
      if (!read_loaded(module_, table + at, relocation)) return;
      const auto addend = static_cast<uint64_t>(relocation.r_addend);
      switch (ELF64_R_TYPE(relocation.r_info)) {
        case R_X86_64_RELATIVE:
        case R_X86_64_IRELATIVE:
          add(addend);
          break;
        case R_X86_64_64:
        case R_X86_64_GLOB_DAT: {
          Elf64_Sym symbol;
          if (read_loaded(module_, symbols_ + ELF64_R_SYM(relocation.r_info) * sizeof symbol, symbol))
            add(symbol.st_value + addend);
          break;
        }
        case R_X86_64_JUMP_SLOT:
          // Before it is bound it leads to the second half of its stub.
          add_word_at(relocation.r_offset);
          break;
        default:
          break;
      }
    }
  }

  // DT_RELR: an address, then bit maps of the words behind it.
  void read_packed_relocations(uint64_t table, uint64_t bytes) {
    uint64_t next = 0, word;
    for (uint64_t at = 0; at + sizeof word <= bytes && may_go_on(); at += sizeof word) {
      if (!read_loaded(module_, table + at, word)) return;
      if ((word & 1) == 0) {
        add_word_at(word);
        next = word + sizeof word;
        continue;
      }
      for (unsigned bit = 1; bit < 64; ++bit) {
        if ((word >> bit & 1) != 0) add_word_at(next + (bit - 1) * sizeof word);
      }
      next += 63 * sizeof word;
    }
  }

  // The search table of .eh_frame_hdr, in the one form that linkers write: the start of each function.
  void read_frames() {
    const uint64_t header = module_.frame_header;
    uint8_t fields[4];
    uint32_t count;
    if (header == 0 || !read_loaded(module_, header, fields)) return;
    constexpr uint8_t kPcRelative4 = 0x1b, kUnsigned4 = 0x03, kTableRelative4 = 0x3b;
    if (fields[0] != 1 || fields[1] != kPcRelative4 || fields[2] != kUnsigned4 || fields[3] != kTableRelative4)
      return;
    if (!read_loaded(module_, header + 8, count)) return;
    struct {
      int32_t function, description;
    } row;
    for (uint64_t i = 0; i < count && may_go_on(); ++i) {
      if (!read_loaded(module_, header + 12 + i * sizeof row, row)) return;
      add(header + static_cast<uint64_t>(int64_t{row.function}));
    }
  }

  void read_pointers() {
    for (const Module::Segment& segment : module_.segments) {
      for (uint64_t at = (segment.address + 7) & ~uint64_t{7}; at - segment.address < segment.bytes; at += 8)
        add_word_at(at);
    }
  }

  const Module& module_;
  uint64_t work_left_;    // rows of tables that may still be read
  uint64_t symbols_ = 0;  // the dynamic symbols' table
  std::vector<uint64_t> roots_;
};

}  // namespace

std::vector<uint64_t> find_roots(const Module& module) { return Finder(module).run(); }

}  // namespace phybin::image
