// The guest's vDSO: a small x86_64 shared library with the names that libc and Go look for.
//
// Its functions are plain system calls. The worker answers those of time without the kernel (syscalls/time.cpp), so
// nothing is lost against code that would read the clock itself, and there is no data page to keep up to date.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace phybin::process {

// The file image, position-independent; one segment, read and execute, as large as the span.
std::span<const uint8_t> vdso_image();

}  // namespace phybin::process
