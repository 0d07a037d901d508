// Images: translations of a whole module, made elsewhere and mapped read-only beside it (proto/image_format.h).
//
// An image is the second kind of code memory. Nothing is read or written when one is attached, whatever its size: its
// own index is probed where it is mapped, its slots are private pages that are copied when they are linked, its
// tables of places are read when a fault or a signal needs them. What private code there is comes first: it may be
// better (barriers), or newer. An image is left as a whole, in the way of chunks (docs/design.md, "Retiring code"),
// when the guest changes what it was made from, when it does badly, or when somebody says so.
//
// The attached images stand in a table that is replaced as a whole and read without a lock, by C++ and by stubs.S.
#pragma once

#include <cstdint>

#include "worker/runtime/code_memory.h"
#include "worker/runtime/regions.h"

namespace phybin::runtime {

// An image in memory: the whole file read-only and executable from `base` on, private writable pages over its slots,
// noted as the worker's (worker_memory.h). Its header was checked.
struct ImageMapping {
  uint64_t base;
  uint64_t text;  // guest address at which the module's text (ImageHeader::text_address) is mapped
};

// Takes the mapping over. From now on its code is found.
void attach_image(const ImageMapping& mapping);
// Of the module whose text begins at guest address `text`.
bool has_image(uint64_t text);
// Leaves all images, or the one of the module whose text begins at `text`.
void leave_images();
// Leaves the images whose own place in memory overlaps [start, end), and waits until no thread uses them any more and
// they are unmapped; false if that takes too long. Only from a system call of the guest.
bool vacate_images(uint64_t start, uint64_t end);

// ---- For regions.cpp and the dispatcher ---------------------------------------------------------------------------

// Lock-free, for C++ code; stubs.S has its own.
CodeAddress find_in_images(uint64_t guest);
// Lock-free and async-signal-safe.
bool is_image_address(uint64_t host);

// With the code lock held:
bool locate_in_images(uint64_t host, KnownPlace& out);
void link_image_slot(uint64_t slot, uint64_t guest);
// Retires the image that holds `host`; the images whose module's text overlaps [start, end). False if there is none.
// finish_retiring() must follow.
bool retire_image_at(uint64_t host);
bool retire_images_within(uint64_t start, uint64_t end);
// The memory model has changed: the other variant of each image is used from now on.
void switch_image_variants();
// Only the calling thread is left; it is not inside.
void images_after_fork_child();
// Unmaps what no thread can be in any more; `passed` is the oldest epoch that some thread may still be in.
void free_passed_images(uint64_t passed);

}  // namespace phybin::runtime
