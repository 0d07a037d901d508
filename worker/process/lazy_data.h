// Tables full of pointers that hardly any process needs: their relocation is put off.
//
// The worker is position-independent and without a dynamic linker: libc's start code adds the load address to each
// pointer in constant data, 7 instructions for each, and makes each page of it private memory of the process. Half of
// these pointers are the disassembler's, which only --trace-instruction uses. The linker script lazy_data.ld puts
// that data in front of other data, so that its relocations are among the first. phybin_start leaves them out, does
// the others itself, in fewer instructions, and none to libc.
#pragma once

namespace phybin::process {

// Relocates the data; before anything of it is used, and while there is one thread. False if it cannot be made
// writable.
bool relocate_lazy_data();

}  // namespace phybin::process
