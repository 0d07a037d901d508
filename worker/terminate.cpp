// What is said when an exception of the worker is caught by nobody, which is a bug or want of memory.
//
// It replaces libstdc++'s function, which would bring the demangler of C++ names and its tables into every process.
#include <cxxabi.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <typeinfo>

namespace __gnu_cxx {

void __verbose_terminate_handler() {
  const char* what = "unknown";
  if (const std::type_info* type = abi::__cxa_current_exception_type()) what = type->name();
  char text[256];
  size_t at = 0;
  const char* const parts[] = {"phybin: internal error: exception ", what, "\n"};
  for (const char* part : parts) {
    const size_t length = strnlen(part, sizeof text - at);
    memcpy(text + at, part, length);
    at += length;
  }
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, at);
  abort();
}

}  // namespace __gnu_cxx
