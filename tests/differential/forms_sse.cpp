// Forms of SSE and SSE2 and of the later 128-bit extensions.
#include "tests/differential/form.h"

namespace phybin::difftest {
void add_sse_forms(std::vector<Form>& forms) { (void)forms; }
}  // namespace phybin::difftest
