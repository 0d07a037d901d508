// phybin-compile-image: makes images on machines that are no ARM64, for a host without optional features, whose
// counter is the TSC, unless told otherwise.
#include <unistd.h>

#include "worker/compile/compile_image.h"

int main(int argc, char** argv) {
  // Without the end of a program: what that does is not allowed any more.
  _exit(phybin::compile::run_command(argc - 1, argv + 1, {}));
}
