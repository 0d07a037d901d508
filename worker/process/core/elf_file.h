// ELF headers, read as data: no file is touched here, so that tests can feed it anything.
//
// Every field that is used is checked first. What Linux tolerates and programs rely on is tolerated (alignments that
// are no power of two, unknown segment types); what could only end in a crash is refused with a reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace phybin::process {

inline constexpr uint64_t kGuestAddressEnd = (uint64_t{1} << 47) - 4096;  // TASK_SIZE of x86_64 with 4-level paging
inline constexpr size_t kElfHeaderSize = 64;
inline constexpr size_t kProgramHeaderSize = 56;
inline constexpr size_t kMaxProgramHeaders = 65536 / kProgramHeaderSize;  // Linux: the table fits 64 KiB

enum class FileKind : uint8_t {
  kX64,
  kNative,    // ELF of the host's own architecture, ARM64
  kOtherElf,  // ELF that nobody here can run; describe_machine() says which
  kScript,    // #!
  kEmpty,
  kUnknown,
};

// What the first bytes of a file say that it is.
FileKind classify(const uint8_t* bytes, size_t size);
// "an i386 program" and the like, for a kOtherElf file.
std::string describe_machine(const uint8_t* bytes, size_t size);

struct ElfHeader {
  bool position_independent = false;  // ET_DYN
  uint64_t entry = 0;
  uint64_t table_offset = 0;  // of the program headers in the file
  unsigned table_count = 0;
};

// Reads the first kElfHeaderSize bytes of an x86_64 ELF file. Returns what is wrong, empty when nothing is.
std::string read_elf_header(const uint8_t* bytes, size_t size, uint64_t file_size, ElfHeader& header);

struct Segment {
  uint64_t address = 0;  // as linked
  uint64_t file_offset = 0;
  uint64_t file_size = 0;
  uint64_t memory_size = 0;
  int protection = 0;  // PROT_*
};

struct ElfLayout {
  std::vector<Segment> segments;  // ascending, not overlapping
  uint64_t low = 0, high = 0;     // span of all segments, in whole pages
  uint64_t alignment = 0;         // largest of the segments, at least a page
  uint64_t table_address = 0;     // where the program headers stand once loaded; 0: nowhere
  bool has_interpreter = false;
  uint64_t interpreter_offset = 0, interpreter_size = 0;  // of its path in the file, with the NUL
  bool executable_stack = true;                           // without PT_GNU_STACK
};

// Reads the program headers, `header.table_count` of them from `table`.
std::string read_elf_layout(const ElfHeader& header, const uint8_t* table, size_t size, uint64_t file_size,
                            uint64_t page_size, ElfLayout& layout);

// The `#!` line: interpreter and its one optional argument. False if there is none or it is cut off.
struct ScriptLine {
  std::string interpreter;
  bool has_argument = false;
  std::string argument;
};
bool read_script_line(const char* bytes, size_t size, ScriptLine& line);

}  // namespace phybin::process
