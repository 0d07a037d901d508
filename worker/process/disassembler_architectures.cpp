// Keeps all but two architectures of the disassembler library out of the worker.
//
// Capstone's table of architectures names two functions of each. Where they are defined here, the linker does not
// take the archive's members that hold them: the worker, a static PIE, would otherwise relocate the tables of all
// architectures whenever it starts (548,000 instructions instead of 51,000).
#include <capstone/capstone.h>

extern "C" {
#define PHYBIN_NO_ARCHITECTURE(name)                       \
  cs_err name##_global_init(void*);                        \
  cs_err name##_global_init(void*) { return CS_ERR_ARCH; } \
  cs_err name##_option(void*, cs_opt_type, size_t);        \
  cs_err name##_option(void*, cs_opt_type, size_t) { return CS_ERR_ARCH; }

PHYBIN_NO_ARCHITECTURE(ARM)
PHYBIN_NO_ARCHITECTURE(EVM)
PHYBIN_NO_ARCHITECTURE(M680X)
PHYBIN_NO_ARCHITECTURE(M68K)
PHYBIN_NO_ARCHITECTURE(Mips)
PHYBIN_NO_ARCHITECTURE(PPC)
PHYBIN_NO_ARCHITECTURE(Sparc)
PHYBIN_NO_ARCHITECTURE(SystemZ)
PHYBIN_NO_ARCHITECTURE(TMS320C64x)
PHYBIN_NO_ARCHITECTURE(XCore)
}
