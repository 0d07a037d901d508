// See pages.h.
#include "daemon/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <new>
#include <string>
#include <system_error>

namespace phybin::daemon {
namespace {

// Of newer kernels than the C library's headers.
constexpr unsigned kNoExecSeal = 8;       // MFD_NOEXEC_SEAL, Linux 6.3
constexpr int kSealFutureWrite = 0x0010;  // F_SEAL_FUTURE_WRITE, Linux 5.1

}  // namespace

std::optional<Descriptor> make_memory_file(const char* name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Descriptor file(memfd_create(name, kFlags | kNoExecSeal));
  if (!file && errno == EINVAL) file.reset(memfd_create(name, kFlags));
  if (!file) return std::nullopt;
  return file;
}

PolicyMemory::~PolicyMemory() {
  if (page_ != nullptr) munmap(page_, sizeof *page_);
}

PolicyMemory::PolicyMemory() {
  auto check = [](bool good, const char* what) {
    if (!good) throw std::system_error(errno, std::generic_category(), std::string("policy page: ") + what);
  };
  auto file = make_memory_file("phybin-policy");
  check(file && ftruncate(file->get(), sizeof(proto::PolicyPage)) == 0, "memfd");
  void* memory = mmap(nullptr, sizeof(proto::PolicyPage), PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  check(memory != MAP_FAILED, "mmap");
  page_ = new (memory) proto::PolicyPage;
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  check(
      fcntl(file->get(), F_ADD_SEALS, kSeals | kSealFutureWrite) == 0 || fcntl(file->get(), F_ADD_SEALS, kSeals) == 0,
      "seals");
  // A descriptor for reading could be opened again for writing through /proc, but for the mode.
  check(fchmod(file->get(), 0400) == 0, "mode");
  file_.reset(open(("/proc/self/fd/" + std::to_string(file->get())).c_str(), O_RDONLY | O_CLOEXEC));
  check(static_cast<bool>(file_), "/proc/self/fd");
}

WorkerMemory::~WorkerMemory() {
  if (page_ != nullptr) munmap(const_cast<proto::WorkerPage*>(page_), sizeof *page_);
}

bool WorkerMemory::create() {
  auto file = make_memory_file("phybin-worker");
  if (!file || ftruncate(file->get(), sizeof(proto::WorkerPage)) != 0) return false;
  if (fcntl(file->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return false;
  void* memory = mmap(nullptr, sizeof(proto::WorkerPage), PROT_READ, MAP_SHARED, file->get(), 0);
  if (memory == MAP_FAILED) return false;
  page_ = static_cast<const proto::WorkerPage*>(memory);
  file_ = std::move(*file);
  return true;
}

}  // namespace phybin::daemon
