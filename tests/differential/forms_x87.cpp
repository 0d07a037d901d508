#include "tests/differential/form.h"
namespace phybin::difftest {
void add_x87_forms(std::vector<Form>& forms) { (void)forms; }
}  // namespace phybin::difftest
