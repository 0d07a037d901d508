#include "tests/differential/form.h"
namespace phybin::difftest {
void add_avx_forms(std::vector<Form>& forms) { (void)forms; }
}  // namespace phybin::difftest
