// Checked reading of ELF headers. See elf_file.h; field names are those of the System V ABI.
#include "worker/process/core/elf_file.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace phybin::process {
namespace {

bool is_elf(const uint8_t* bytes, size_t size) { return size >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0; }

uint16_t machine_of(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[EI_DATA] == ELFDATA2MSB ? bytes[18] << 8 | bytes[19]
                                                             : bytes[19] << 8 | bytes[18]);
}

struct MachineName {
  uint16_t machine;
  const char* name;
};
constexpr MachineName kMachines[] = {
    {EM_386, "an i386"},    {EM_ARM, "a 32-bit ARM"}, {EM_X86_64, "an x32"},         {EM_AARCH64, "an AArch64"},
    {EM_RISCV, "a RISC-V"}, {EM_PPC64, "a PowerPC"},  {EM_PPC, "a PowerPC"},         {EM_S390, "an S/390"},
    {EM_MIPS, "a MIPS"},    {EM_SPARCV9, "a SPARC"},  {EM_LOONGARCH, "a LoongArch"}, {EM_IA_64, "an Itanium"},
    {EM_68K, "an m68k"},
};

int protection_of(uint32_t flags) {
  return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

std::string number(uint64_t value) {
  char text[19];
  int at = sizeof text;
  do {
    text[--at] = "0123456789abcdef"[value & 15];
    value >>= 4;
  } while (value);
  return "0x" + std::string(text + at, sizeof text - static_cast<size_t>(at));
}

// True if start + size does not wrap and stays within `limit`.
bool within(uint64_t start, uint64_t size, uint64_t limit) { return start <= limit && size <= limit - start; }

}  // namespace

FileKind classify(const uint8_t* bytes, size_t size) {
  if (size == 0) return FileKind::kEmpty;
  if (size >= 2 && bytes[0] == '#' && bytes[1] == '!') return FileKind::kScript;
  if (!is_elf(bytes, size)) return FileKind::kUnknown;
  if (size < 20) return FileKind::kOtherElf;
  bool lsb64 = bytes[EI_CLASS] == ELFCLASS64 && bytes[EI_DATA] == ELFDATA2LSB;
  uint16_t machine = machine_of(bytes);
  if (lsb64 && machine == EM_X86_64) return FileKind::kX64;
  if (lsb64 && machine == EM_AARCH64) return FileKind::kNative;
  return FileKind::kOtherElf;
}

std::string describe_machine(const uint8_t* bytes, size_t size) {
  if (size < 20) return "a truncated ELF file";
  uint16_t machine = machine_of(bytes);
  for (const MachineName& known : kMachines) {
    if (known.machine == machine) return std::string(known.name) + " program";
  }
  return "an ELF program for machine " + std::to_string(machine);
}

std::string read_elf_header(const uint8_t* bytes, size_t size, uint64_t file_size, ElfHeader& header) {
  Elf64_Ehdr elf;
  if (size < sizeof elf) return "truncated ELF header";
  memcpy(&elf, bytes, sizeof elf);
  if (classify(bytes, size) != FileKind::kX64) return "not an x86_64 ELF file";
  if (elf.e_ident[EI_VERSION] != EV_CURRENT) return "unknown ELF version";
  if (elf.e_type != ET_EXEC && elf.e_type != ET_DYN) {
    return elf.e_type == ET_REL    ? "an object file, not a program"
           : elf.e_type == ET_CORE ? "a core file, not a program"
                                   : "not a program (ELF type " + std::to_string(elf.e_type) + ")";
  }
  if (elf.e_phentsize != kProgramHeaderSize) {
    return "program headers of " + std::to_string(elf.e_phentsize) + " bytes, not 56";
  }
  if (elf.e_phnum == 0) return "no program headers";
  if (elf.e_phnum > kMaxProgramHeaders) return "too many program headers (" + std::to_string(elf.e_phnum) + ")";
  if (!within(elf.e_phoff, elf.e_phnum * kProgramHeaderSize, file_size)) {
    return "program headers beyond the end of the file";
  }
  header.position_independent = elf.e_type == ET_DYN;
  header.entry = elf.e_entry;
  header.table_offset = elf.e_phoff;
  header.table_count = elf.e_phnum;
  return {};
}

std::string read_elf_layout(const ElfHeader& header, const uint8_t* table, size_t size, uint64_t file_size,
                            uint64_t page_size, ElfLayout& layout) {
  if (size < header.table_count * kProgramHeaderSize) return "truncated program headers";
  layout = {};
  layout.alignment = page_size;
  layout.segments.reserve(8);
  uint64_t table_from_phdr = 0, end = 0;
  const uint64_t page_mask = page_size - 1;
  for (unsigned i = 0; i < header.table_count; ++i) {
    Elf64_Phdr phdr;
    memcpy(&phdr, table + i * kProgramHeaderSize, sizeof phdr);
    const auto which = [i] { return "segment " + std::to_string(i); };
    switch (phdr.p_type) {
      case PT_GNU_STACK:
        layout.executable_stack = phdr.p_flags & PF_X;
        break;
      case PT_PHDR:
        table_from_phdr = phdr.p_vaddr;
        break;
      case PT_INTERP:
        if (layout.has_interpreter) break;
        if (phdr.p_filesz < 2 || phdr.p_filesz > 4096) return "interpreter path of impossible length";
        if (!within(phdr.p_offset, phdr.p_filesz, file_size)) return "interpreter path beyond the end of the file";
        layout.has_interpreter = true;
        layout.interpreter_offset = phdr.p_offset;
        layout.interpreter_size = phdr.p_filesz;
        break;
      case PT_LOAD: {
        if (phdr.p_filesz > phdr.p_memsz) return which() + ": larger in the file than in memory";
        if (phdr.p_memsz == 0) break;
        if (!within(phdr.p_vaddr, phdr.p_memsz, kGuestAddressEnd)) {
          return which() + ": address " + number(phdr.p_vaddr) + ", size " + number(phdr.p_memsz) +
                 " is beyond the address space";
        }
        if (!within(phdr.p_offset, phdr.p_filesz, file_size))
          return which() + ": beyond the end of the file (truncated?)";
        if (phdr.p_filesz && ((phdr.p_vaddr ^ phdr.p_offset) & page_mask)) {
          return which() + ": address and file offset disagree within a page of " + std::to_string(page_size) +
                 " bytes";
        }
        if (!layout.segments.empty() && phdr.p_vaddr < end) return which() + ": overlaps the one before";
        // Linux takes alignments that are no power of two for none.
        if (phdr.p_align > layout.alignment && (phdr.p_align & (phdr.p_align - 1)) == 0) {
          if (phdr.p_align > uint64_t{1} << 40) return which() + ": impossible alignment";
          layout.alignment = phdr.p_align;
        }
        if (layout.segments.empty()) layout.low = phdr.p_vaddr & ~page_mask;
        layout.segments.push_back(
            {phdr.p_vaddr, phdr.p_offset, phdr.p_filesz, phdr.p_memsz, protection_of(phdr.p_flags)});
        end = phdr.p_vaddr + phdr.p_memsz;
        if (header.table_offset >= phdr.p_offset &&
            within(header.table_offset - phdr.p_offset, header.table_count * kProgramHeaderSize, phdr.p_filesz)) {
          layout.table_address = phdr.p_vaddr + (header.table_offset - phdr.p_offset);
        }
        break;
      }
      default:
        break;
    }
  }
  if (layout.segments.empty()) return "no segment to load";
  layout.high = (end + page_mask) & ~page_mask;
  if (layout.table_address == 0) layout.table_address = table_from_phdr;
  bool entered = std::any_of(layout.segments.begin(), layout.segments.end(), [&](const Segment& segment) {
    return header.entry >= segment.address && header.entry - segment.address < segment.memory_size;
  });
  if (!entered) return "entry point " + number(header.entry) + " is in no segment";
  return {};
}

bool read_script_line(const char* bytes, size_t size, ScriptLine& line) {
  if (size < 2 || bytes[0] != '#' || bytes[1] != '!') return false;
  const char* end = static_cast<const char*>(memchr(bytes, '\n', size));
  // Linux reads 256 bytes; a longer interpreter name is an error, a longer argument is cut.
  constexpr size_t kLongest = 255;
  const size_t whole = end ? static_cast<size_t>(end - bytes) : size;
  size = std::min(whole, kLongest);
  std::string text(bytes + 2, size - 2);
  text.resize(strlen(text.c_str()));
  constexpr const char* kBlank = " \t";
  size_t start = text.find_first_not_of(kBlank);
  if (start == text.npos) return false;
  size_t stop = text.find_first_of(kBlank, start);
  if (stop == text.npos && whole > kLongest) return false;
  line = {};
  line.interpreter = text.substr(start, stop == text.npos ? stop : stop - start);
  if (stop == text.npos) return true;
  size_t from = text.find_first_not_of(kBlank, stop);
  if (from == text.npos) return true;
  line.has_argument = true;
  line.argument = text.substr(from, text.find_last_not_of(kBlank) - from + 1);
  return true;
}

}  // namespace phybin::process
