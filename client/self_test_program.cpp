// See self_test_program.h. The file is written out by hand, so that building phybinctl needs no x86_64 assembler: ELF
// header, one program header that maps all of the file at 0x400000, code, text.
#include "client/self_test_program.h"

namespace phybin::client {
namespace {

// One field a line.
// clang-format off
constexpr uint8_t kProgram[] = {
    // ELF header: 64 bits, little endian, version 1, System V.
    0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    2, 0,                       // e_type: ET_EXEC
    62, 0,                      // e_machine: EM_X86_64
    1, 0, 0, 0,                 // e_version
    0x78, 0, 0x40, 0, 0, 0, 0, 0,  // e_entry: behind both headers
    64, 0, 0, 0, 0, 0, 0, 0,    // e_phoff
    0, 0, 0, 0, 0, 0, 0, 0,     // e_shoff: none
    0, 0, 0, 0,                 // e_flags
    64, 0, 56, 0, 1, 0,         // sizes of both headers, one program header
    64, 0, 0, 0, 0, 0,          // no section headers
    // Program header.
    1, 0, 0, 0,                 // p_type: PT_LOAD
    5, 0, 0, 0,                 // p_flags: read, execute
    0, 0, 0, 0, 0, 0, 0, 0,     // p_offset
    0, 0, 0x40, 0, 0, 0, 0, 0,  // p_vaddr
    0, 0, 0x40, 0, 0, 0, 0, 0,  // p_paddr
    165, 0, 0, 0, 0, 0, 0, 0,   // p_filesz
    165, 0, 0, 0, 0, 0, 0, 0,   // p_memsz
    0, 0x10, 0, 0, 0, 0, 0, 0,  // p_align
    // Code.
    0xb8, 1, 0, 0, 0,               // mov $1, %eax           write(
    0x89, 0xc7,                     // mov %eax, %edi           1,
    0x48, 0x8d, 0x35, 19, 0, 0, 0,  // lea text(%rip), %rsi     text,
    0xba, 12, 0, 0, 0,              // mov $12, %edx            12)
    0x0f, 0x05,                     // syscall
    0xb8, 60, 0, 0, 0,              // mov $60, %eax          exit(
    0xbf, 42, 0, 0, 0,              // mov $42, %edi            42)
    0x0f, 0x05,                     // syscall
    // text:
    'x', '8', '6', '_', '6', '4', ' ', 'r', 'u', 'n', 's', '\n',
};
// clang-format on
static_assert(sizeof kProgram == 165);

}  // namespace

std::span<const uint8_t> self_test_program() { return kProgram; }

}  // namespace phybin::client
