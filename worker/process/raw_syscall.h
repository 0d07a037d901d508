// Host system calls without libc in between: results as the kernel gives them, -errno on failure; errno is untouched.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

namespace phybin::process {

inline int64_t raw_syscall(long number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                           uint64_t e = 0, uint64_t f = 0) {
  register uint64_t x8 asm("x8") = static_cast<uint64_t>(number);
  register uint64_t x0 asm("x0") = a;
  register uint64_t x1 asm("x1") = b;
  register uint64_t x2 asm("x2") = c;
  register uint64_t x3 asm("x3") = d;
  register uint64_t x4 asm("x4") = e;
  register uint64_t x5 asm("x5") = f;
  asm volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8) : "memory", "cc");
  return static_cast<int64_t>(x0);
}

// Whether the result of a system call is an error.
inline bool failed(int64_t result) { return result < 0 && result >= -4095; }

template <typename T>
uint64_t word(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace phybin::process
