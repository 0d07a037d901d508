// See modules.h.
#include "worker/process/modules.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "worker/process/address_space.h"
#include "worker/process/address_space_internal.h"
#include "worker/process/raw_syscall.h"
#include "worker/runtime/images.h"
#include "worker/runtime/worker_memory.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace phybin::process {
namespace {

// An executable mapping of a file, at the time it was made.
struct Module {
  proto::FileKey file;
  uint32_t number;
  uint64_t start, length, offset;
  uint64_t text = 0;       // guest address of the text that an image is attached to; 0: none ever was
  uint64_t image_end = 0;  // of an image that has its place behind the module
};

ImageSource source;
std::vector<Module> modules;
bool has_new_offers = false;
size_t modules_checked = 16;  // when there are so many, those that are gone are dropped

bool is_still_mapped(const Module& module) {
  std::lock_guard guard(list_lock);
  uint64_t start = 0;
  const Range* range = mappings.find(module.start, &start);
  return range != nullptr && range->module == module.number && (range->protection & PROT_EXEC) != 0 &&
         range->end >= module.start + module.length && range->offset + (module.start - start) == module.offset;
}

// Executable, unlike everything of the guest's.
int64_t map_image(uint64_t place, uint64_t length, int fd) {
  const uint64_t flags = MAP_PRIVATE | (place != 0 ? MAP_FIXED_NOREPLACE : 0);
  const int64_t result =
      raw_syscall(SYS_mmap, place, length, PROT_READ | PROT_EXEC, flags, static_cast<uint64_t>(fd), 0);
  if (failed(result) || place == 0 || result == static_cast<int64_t>(place)) return result;
  raw_syscall(SYS_munmap, static_cast<uint64_t>(result), length);
  return -EEXIST;
}

// Attaches the image if it belongs to what the module shows and its place is free.
void attach(Module& module) {
  OfferedImage image;
  if (module.text != 0 || !source.find_image(module.file, image)) return;
  const proto::ImageHeader& header = *image.header;
  const uint64_t before_text = header.text_file_offset - module.offset;
  if (header.text_file_offset < module.offset || before_text > module.length ||
      header.text_bytes > module.length - before_text)
    return;
  const uint64_t text = module.start + before_text, bias = text - header.text_address;
  uint64_t place = 0;
  if (header.image_address != 0) {
    place = bias + header.image_address;
    if (place % page_size() != 0 || place > guest_top() || header.file_bytes > guest_top() - place) return;
    std::lock_guard guard(list_lock);
    if (!mappings.is_free(place, place + header.file_bytes)) return;
  } else if (bias != 0) {
    return;
  }
  const int64_t result = map_image(place, header.file_bytes, image.fd);
  if (failed(result)) return;
  const auto base = static_cast<uint64_t>(result), end = base + header.file_bytes;
  const uint64_t slots = header.slots_end - header.slots_offset;
  if (slots != 0 &&
      failed(raw_syscall(SYS_mmap, base + header.slots_offset, slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                         static_cast<uint64_t>(image.fd), header.slots_offset))) {
    raw_syscall(SYS_munmap, base, header.file_bytes);
    return;
  }
  runtime::note_worker_range(base, end);
  Range range;
  range.kind = RangeKind::kForeign;
  note(base, end, range);
  module.text = text;
  module.image_end = place != 0 ? end : 0;
  runtime::attach_image({base, text});
  source.image_attached();
}

void attach_missing_images() {
  has_new_offers = false;
  for (Module& module : modules) {
    if (module.text == 0 && is_still_mapped(module)) attach(module);
  }
}

}  // namespace

void set_image_source(const ImageSource& given) { source = given; }

proto::FileKey file_key(const struct stat& status) {
  constexpr int64_t kSecond = 1'000'000'000;
  return {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size),
          status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec,
          status.st_ctim.tv_sec * kSecond + status.st_ctim.tv_nsec};
}

namespace {

// False for what is no file, or one without a name.
bool key_of_file(int fd, proto::FileKey& key) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink == 0) return false;
  key = file_key(status);
  return true;
}

}  // namespace

void tell_program(int fd, const struct stat& status, const char* name) {
  if (source.program_opened != nullptr) source.program_opened(fd, status, name);
}

uint64_t image_end_behind(uint64_t start, uint64_t end) {
  uint64_t result = 0;
  for (const Module& module : modules) {
    if (module.start >= start && module.start < end) result = std::max(result, module.image_end);
  }
  return result;
}

uint64_t wanted_gap(uint64_t length, int protection, int flags, int fd) {
  if (source.find_image == nullptr || (flags & MAP_TYPE) != MAP_PRIVATE) return 0;
  if ((flags & MAP_ANONYMOUS) != 0) {
    // Perhaps room for a library with large alignment, which is mapped into it next. How large its image is cannot be
    // known yet; addresses cost nothing where there are many.
    constexpr uint64_t kLargest = 1 << 30, kTimes = 16, kLeast = 64 << 20;
    if (protection != PROT_NONE || length > kLargest) return 0;
    return std::min(std::max(length * kTimes, kLeast), guest_top() >> 6);
  }
  proto::FileKey file;
  OfferedImage image;
  if (!key_of_file(fd, file) || !source.find_image(file, image) || image.header->image_address == 0) return 0;
  // The mapping begins with the module's first address or behind it.
  const uint64_t end = image.header->image_address + image.header->file_bytes;
  return end > length ? end - length : 0;
}

ModuleFile module_of_mapping(int protection, int flags, int fd) {
  ModuleFile module;
  if (source.module_mapped != nullptr && (flags & MAP_TYPE) == MAP_PRIVATE && (flags & MAP_ANONYMOUS) == 0 &&
      (protection & (PROT_EXEC | PROT_WRITE)) == PROT_EXEC && key_of_file(fd, module.file))
    module.number = source.module_mapped(module.file, fd);
  return module;
}

void module_mapped(const ModuleFile& file, uint64_t start, uint64_t length, uint64_t offset) {
  if (modules.size() >= modules_checked) {
    std::erase_if(modules, [](const Module& m) { return !is_still_mapped(m); });
    modules_checked = std::max<size_t>(16, 2 * modules.size());
  }
  std::erase_if(modules, [=](const Module& m) { return m.start < start + length && start < m.start + m.length; });
  attach(modules.emplace_back(
      Module{.file = file.file, .number = file.number, .start = start, .length = length, .offset = offset}));
  if (has_new_offers) attach_missing_images();
}

void note_new_offers() { has_new_offers = true; }

void follow_image_policy() {
  std::lock_guard changing(change_lock);
  if (source.may_use_images()) return attach_missing_images();
  for (Module& module : modules) {
    if (module.text != 0 && runtime::has_image(module.text)) module.text = module.image_end = 0;
  }
  runtime::leave_images();
}

void image_unmapped(uint64_t start, uint64_t end) {
  std::lock_guard guard(list_lock);
  std::vector<std::pair<uint64_t, uint64_t>> pieces;
  mappings.visit(start, end, [&](uint64_t from, uint64_t to, const Range& range) {
    if (range.kind == RangeKind::kForeign) pieces.emplace_back(from, to);
  });
  for (auto [from, to] : pieces) mappings.erase(from, to);
}

}  // namespace phybin::process
