// See image_check.h.
#include "daemon/image_check.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "proto/image_verify.h"

namespace phybin::daemon {
namespace {

// Beyond what the format allows by far.
constexpr uint64_t kMaxImageBytes = 1ull << 31;

// Memory for a file's content. Not a mapping of the file: where the disk cannot be read, that ends in a signal.
class Content {
 public:
  explicit Content(size_t bytes) : bytes_(bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    data_ = memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
  }
  ~Content() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
  uint8_t* data() { return data_; }

 private:
  size_t bytes_;
  uint8_t* data_;
};

}  // namespace

bool stat_file(int file, proto::FileKey& key) {
  struct stat status;
  if (fstat(file, &status) != 0) return false;
  key = {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
         status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
         status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec};
  return true;
}

CheckedImage check_image(int file) {
  CheckedImage result;
  if (!stat_file(file, result.stat)) {
    result.problem = strerror(errno);
    return result;
  }
  const uint64_t size = result.stat.size;
  if (size < sizeof(proto::ImageHeader) || size > kMaxImageBytes) {
    result.problem = "its size is wrong";
    return result;
  }
  Content content(size);
  if (content.data() == nullptr) {
    result.problem = "out of memory";
    return result;
  }
  for (uint64_t done = 0; done != size;) {
    const ssize_t count = pread(file, content.data() + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      result.problem = count < 0 ? strerror(errno) : "it became shorter";
      return result;
    }
    done += static_cast<uint64_t>(count);
  }
  if (const char* problem = proto::verify_image(content.data(), size); problem != nullptr) {
    result.problem = problem;
    return result;
  }
  proto::ImageHeader header;
  memcpy(&header, content.data(), sizeof header);
  result.key = {to_digest(header.module_digest), to_digest(header.translator_build), header.host_features,
                header.code_options, kEveryone};
  result.file_bytes = size;
  for (const proto::ImageVariant& variant : header.variants)
    result.entries = std::max(result.entries, variant.entries);
  return result;
}

}  // namespace phybin::daemon
