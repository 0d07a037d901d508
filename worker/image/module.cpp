// See module.h; field names are those of the System V ABI.
#include "worker/image/module.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "proto/image_format.h"
#include "worker/process/core/elf_file.h"

namespace phybin::image {
namespace {

// What module and image span is reached by ADRP in either direction, RIP-relative operands to the module's
// surroundings included.
constexpr uint64_t kMaxSpan = uint64_t{1} << 30;
// Unit of file offsets and addresses in ELF files of x86_64.
constexpr uint64_t kPage = 4096;

constexpr uint64_t round_down(uint64_t value, uint64_t unit) { return value & ~(unit - 1); }
constexpr uint64_t round_up(uint64_t value, uint64_t unit) { return round_down(value + unit - 1, unit); }

bool within(uint64_t start, uint64_t bytes, uint64_t size) { return start <= size && bytes <= size - start; }

// Relocations in the text are bytes that differ from process to process.
bool has_text_relocations(const Module& module) {
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= module.dynamic_bytes; at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    memcpy(&entry, module.file + module.dynamic_offset + at, sizeof entry);
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_TEXTREL) != 0)) return true;
  }
  return false;
}

std::string choose_text(const process::ElfLayout& layout, Module& module) {
  const process::Segment* text = nullptr;
  for (const process::Segment& segment : layout.segments) {
    if ((segment.protection & PROT_EXEC) == 0) continue;
    if (text != nullptr) return "more than one executable segment";
    text = &segment;
  }
  if (text == nullptr || text->file_size == 0) return "no executable segment";
  if ((text->protection & PROT_WRITE) != 0) return "the executable segment is writable";
  module.text_file_offset = round_down(text->file_offset, kPage);
  module.text_address = round_down(text->address, kPage);
  module.text_bytes = text->file_size + (text->file_offset - module.text_file_offset);
  // Entry points are numbers of 31 bits.
  if (module.text_bytes > proto::kMaxImageTextBytes || module.text_file_offset >= proto::kMaxImageTextBytes)
    return "too large an executable segment";
  const uint64_t text_end = round_up(module.text_address + module.text_bytes, kPage);
  for (const process::Segment& segment : layout.segments) {
    if (&segment == text) continue;
    const uint64_t end = round_up(segment.address + segment.memory_size, kPage);
    if (round_down(segment.address, kPage) < text_end && module.text_address < end)
      return "another segment shares a page with the executable one";
  }
  return {};
}

}  // namespace

const uint8_t* Module::loaded(uint64_t address, uint64_t bytes) const {
  const auto behind = std::upper_bound(segments.begin(), segments.end(), address,
                                       [](uint64_t a, const Segment& segment) { return a < segment.address; });
  if (behind == segments.begin()) return nullptr;
  const Segment& segment = behind[-1];
  const uint64_t at = address - segment.address;
  return within(at, bytes, segment.bytes) ? file + segment.file_offset + at : nullptr;
}

std::string read_module(const uint8_t* file, size_t size, Module& module) {
  module = {};
  module.file = file;
  module.size = size;
  process::ElfHeader header;
  process::ElfLayout layout;
  std::string problem = process::read_elf_header(file, size, size, header);
  if (!problem.empty()) return problem;
  const uint8_t* table = file + header.table_offset;
  problem = process::read_elf_layout(header, table, size - header.table_offset, size, kPage, layout);
  if (!problem.empty()) return problem;
  module.position_independent = header.position_independent;
  module.entry = header.entry;
  for (const process::Segment& segment : layout.segments)
    module.segments.push_back({segment.address, segment.file_offset, segment.file_size});
  for (unsigned i = 0; i < header.table_count; ++i) {
    Elf64_Phdr phdr;
    memcpy(&phdr, table + i * sizeof phdr, sizeof phdr);
    if (phdr.p_type == PT_DYNAMIC) {
      if (!within(phdr.p_offset, phdr.p_filesz, size)) return "dynamic section beyond the end of the file";
      module.dynamic_offset = phdr.p_offset;
      module.dynamic_bytes = phdr.p_filesz;
    }
    if (phdr.p_type == PT_GNU_EH_FRAME) module.frame_header = phdr.p_vaddr;
  }
  problem = choose_text(layout, module);
  if (!problem.empty()) return problem;
  if (has_text_relocations(module)) return "relocations in the executable segment";
  if (!module.position_independent) return {};
  if (layout.high - layout.low > kMaxSpan) return "too large a module";
  // The gap is for what the kernel and the guest's loader put directly behind a module.
  module.image_address = round_up(layout.high, proto::kImageAlignment) + proto::kImageAlignment;
  return {};
}

}  // namespace phybin::image
