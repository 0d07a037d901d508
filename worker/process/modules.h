// Modules: executable mappings of files, and the images that are attached to them.
//
// When a file is mapped executable and an image of it is offered (cache/), the image is mapped at its place beside
// the module and handed to the runtime. The place must be free: so that it is, new mappings that are, or may become,
// a module are placed with a gap behind them. The gap is not kept: what the guest maps there afterwards is the
// guest's, and a module whose place is taken is translated privately.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "proto/image_format.h"
#include "proto/messages.h"

namespace phybin::process {

// An image that may be used. Both stay valid while `change_lock` is held.
struct OfferedImage {
  int fd;
  const proto::ImageHeader* header;  // checked
};

// Where images come from; all null as long as there is no such place. Called with `change_lock` held.
struct ImageSource {
  // The program was opened; nothing is mapped yet. May set the source anew.
  void (*program_opened)(int fd, const struct stat& status, const char* name) = nullptr;
  // The policy in force.
  bool (*may_use_images)() = nullptr;
  bool (*find_image)(const proto::FileKey& file, OfferedImage& out) = nullptr;
  // A file was mapped executable from descriptor `fd`. Its number for Config::translated, not 0; or 0 if nobody wants
  // to know what is translated in it.
  uint32_t (*module_mapped)(const proto::FileKey& file, int fd) = nullptr;
  void (*image_attached)() = nullptr;
};
void set_image_source(const ImageSource& source);

proto::FileKey file_key(const struct stat& status);

// For the loader.
void tell_program(int fd, const struct stat& status, const char* name);
// End of the image that is attached to a module mapped within [start, end); 0 if there is none.
uint64_t image_end_behind(uint64_t start, uint64_t end);

// For address_space.cpp, with `change_lock` held.

// The gap that a new mapping should have behind it.
uint64_t wanted_gap(uint64_t length, int protection, int flags, int fd);

struct ModuleFile {
  proto::FileKey file;
  uint32_t number = 0;  // 0: not a module
};
// What a new mapping like this shows.
ModuleFile module_of_mapping(int protection, int flags, int fd);
// It was mapped and put into the list.
void module_mapped(const ModuleFile& file, uint64_t start, uint64_t length, uint64_t offset);

// From the source's functions: images were offered of modules that may be mapped already.
void note_new_offers();
// The policy has changed: leaves all images, or attaches those that are offered to the modules that have none. What
// was left for another reason is not attached again.
void follow_image_policy();

// For the runtime (Config::image_unmapped).
void image_unmapped(uint64_t start, uint64_t end);

}  // namespace phybin::process
