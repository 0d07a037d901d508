// See images.h.
#include "worker/runtime/images.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <new>
#include <vector>

#include "proto/image_format.h"
#include "worker/runtime/links.h"
#include "worker/runtime/stub_offsets.h"
#include "worker/runtime/worker_memory.h"

namespace phybin::runtime {
namespace {

using proto::ImageHeader;
using proto::ImageIndexBucket;
using proto::ImagePlace;
using proto::ImageSlotPair;
using proto::ImageVariant;

static_assert(proto::kImageIndexMultiplier == CODE_INDEX_MULTIPLIER);
static_assert(sizeof(ImageSlotPair) == kSlotPairBytes);

// Where an image is mapped, for readers without the lock, stubs.S among them. A place is free while its end is 0.
struct ImagePlaceInMemory {
  std::atomic<uint64_t> start, end, text;
};
static_assert(sizeof(ImagePlaceInMemory) == 24);
constexpr size_t kMostImages = 1024;

}  // namespace

extern "C" {
ImagePlaceInMemory phybin_image_places[kMostImages];
std::atomic<size_t> phybin_image_place_count = 0;
}

namespace {

// As stubs.S reads it.
struct ImageRange {
  uint64_t start;  // of the module's text, guest address
  uint32_t bytes;
  uint32_t mask;
  const ImageIndexBucket* index;
  uint64_t code;  // host address
};
static_assert(sizeof(ImageRange) == 32);
struct ImageTable {
  uint64_t count;
  uint64_t reserved;
  ImageRange ranges[];  // ascending
};
static_assert(offsetof(ImageTable, ranges) == 16);

// A pair of slots that was linked; the records of pairs that were reset are used again.
struct LinkedPair {
  SlotPairRecord record;
  uint64_t* slots;
};

struct Image {
  uint32_t owner;           // number in links
  uint64_t base, end;       // of the mapping
  uint64_t text, text_end;  // guest addresses
  std::vector<LinkedPair> links;
  bool retired = false;
  uint64_t retire_epoch = 0;

  const ImageHeader& header() const { return *reinterpret_cast<const ImageHeader*>(base); }
  template <typename T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(base + offset);
  }
};

// By number; null once freed. Few, so searched from front to back.
std::vector<Image*> images;

// Tables that were replaced: threads may be reading them.
struct OldTable {
  ImageTable* table;
  uint64_t epoch;
};
std::vector<OldTable> old_tables;
// C++ code that is looking into a table, or into an index that a table has led it to.
std::atomic<uint32_t> readers = 0;

proto::ImageVariantIndex variant_in_use() {
  return config.code.memory_model == MemoryModel::kTso ? proto::kTsoVariant : proto::kWeakVariant;
}

const ImagePlaceInMemory* place_of(uint64_t host) {
  const size_t count = phybin_image_place_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t end = phybin_image_places[i].end.load(std::memory_order_acquire);
    if (host < end && host >= phybin_image_places[i].start.load(std::memory_order_relaxed))
      return &phybin_image_places[i];
  }
  return nullptr;
}

// False if there are too many.
bool note_place(const Image& image) {
  const size_t count = phybin_image_place_count.load();
  size_t i = 0;
  while (i < count && phybin_image_places[i].end.load() != 0) ++i;
  if (i == kMostImages) return false;
  phybin_image_places[i].start.store(image.base);
  phybin_image_places[i].text.store(image.text);
  phybin_image_places[i].end.store(image.end, std::memory_order_release);
  if (i == count) phybin_image_place_count.store(count + 1, std::memory_order_release);
  return true;
}

void forget_place(const Image& image) {
  for (size_t i = 0; i < phybin_image_place_count.load(); ++i) {
    if (phybin_image_places[i].end.load() == image.end && phybin_image_places[i].start.load() == image.base)
      phybin_image_places[i].end.store(0);
  }
}

Image* image_of(uint64_t host) {
  for (Image* image : images) {
    if (image != nullptr && host >= image->base && host < image->end) return image;
  }
  return nullptr;
}

}  // namespace

// Null while there are no images.
extern "C" {
std::atomic<const ImageTable*> phybin_image_table = nullptr;
}

namespace {

// Makes a table of the images that are in use, and lets everybody see it. Without memory no image is found any more.
void publish_table() {
  size_t count = 0;
  for (const Image* image : images) count += image != nullptr && !image->retired ? 1 : 0;
  ImageTable* table = nullptr;
  if (count != 0) table = static_cast<ImageTable*>(malloc(sizeof(ImageTable) + count * sizeof(ImageRange)));
  if (table != nullptr) {
    table->count = 0;
    for (const Image* image : images) {
      if (image == nullptr || image->retired) continue;
      const ImageVariant& variant = image->header().variants[variant_in_use()];
      table->ranges[table->count++] = {image->text, static_cast<uint32_t>(image->text_end - image->text),
                                       static_cast<uint32_t>(variant.index_mask),
                                       image->at<const ImageIndexBucket>(variant.index_offset),
                                       image->base + variant.code_offset};
    }
    std::sort(table->ranges, table->ranges + count,
              [](const ImageRange& a, const ImageRange& b) { return a.start < b.start; });
  }
  auto* old = const_cast<ImageTable*>(phybin_image_table.exchange(table));
  if (old != nullptr) old_tables.push_back({old, retire_epoch() + 1});
}

void retire_image(Image& image) {
  image.retired = true;
  image.retire_epoch = retire_epoch() + 1;  // of the finish_retiring() that follows
  reset_links_within(image.text, image.text_end);
  for (const LinkedPair& pair : image.links) {
    if (pair.record.linked) forget_links(pair.record.target, image.owner);
  }
  --counts.images;
  counts.image_bytes -= image.end - image.base;
}

// Retires those of the images in use that `choose` says.
template <typename Choose>
bool retire_images_if(Choose choose) {
  bool any = false;
  for (Image* image : images) {
    if (image == nullptr || image->retired || !choose(*image)) continue;
    retire_image(*image);
    any = true;
  }
  if (any) publish_table();
  return any;
}

template <typename Choose>
void leave_images_if(Choose choose) {
  CodeLock lock;
  if (!retire_images_if(choose)) return;
  finish_retiring();
  free_passed();
}

}  // namespace

KnownPair pair_of_image(PairRef ref) {
  LinkedPair& pair = images[ref.owner & ~kImageOwner]->links[ref.pair];
  return {pair.record, pair.slots};
}

void attach_image(const ImageMapping& mapping) {
  const auto& header = *reinterpret_cast<const ImageHeader*>(mapping.base);
  CodeLock lock;
  free_passed();
  size_t number = 0;
  while (number < images.size() && images[number] != nullptr) ++number;
  auto* image = new Image{.owner = kImageOwner | static_cast<uint32_t>(number),
                          .base = mapping.base,
                          .end = mapping.base + header.file_bytes,
                          .text = mapping.text,
                          .text_end = mapping.text + header.text_bytes,
                          .links = {}};
  if (number == images.size())
    images.push_back(image);
  else
    images[number] = image;
  ++counts.images;
  counts.image_bytes += header.file_bytes;
  if (note_place(*image)) return publish_table();
  retire_image(*image);
  finish_retiring();
}

bool has_image(uint64_t text) {
  CodeLock lock;
  return std::any_of(images.begin(), images.end(),
                     [=](const Image* image) { return image != nullptr && !image->retired && image->text == text; });
}

void leave_images() {
  leave_images_if([](const Image&) { return true; });
}

bool vacate_images(uint64_t start, uint64_t end) {
  constexpr unsigned kMostRounds = 2000;
  const auto overlaps = [=](const Image& image) { return image.base < end && start < image.end; };
  leave_images_if(overlaps);
  for (unsigned round = 0; round < kMostRounds; ++round) {
    {
      CodeLock lock;
      free_passed();
      if (std::none_of(images.begin(), images.end(),
                       [&](const Image* image) { return image != nullptr && overlaps(*image); }))
        return true;
    }
    constexpr timespec kPause{0, 100'000};
    nanosleep(&kPause, nullptr);
  }
  return false;
}

CodeAddress find_in_images(uint64_t guest) {
  if (phybin_image_table.load(std::memory_order_relaxed) == nullptr) return {};
  // Before the table is loaded: who frees something has replaced the table first and looks at `readers` then.
  readers.fetch_add(1);
  CodeAddress found;
  if (const ImageTable* table = phybin_image_table.load()) {
    const ImageRange* after =
        std::upper_bound(table->ranges, table->ranges + table->count, guest,
                         [](uint64_t address, const ImageRange& range) { return address < range.start; });
    if (after != table->ranges && guest - after[-1].start < after[-1].bytes) {
      const ImageRange& range = after[-1];
      const auto key = static_cast<uint32_t>(guest - range.start + 1);
      for (uint32_t i = proto::image_index_hash(key);; ++i) {
        const ImageIndexBucket& bucket = range.index[i & range.mask];
        if (bucket.key == 0) break;
        if (bucket.key != key) continue;
        found = {range.code + (bucket.code & ~1u), (bucket.code & 1) != 0, false};
        break;
      }
    }
  }
  readers.fetch_sub(1);
  return found;
}

bool is_image_address(uint64_t host) { return place_of(host) != nullptr; }

bool locate_in_images(uint64_t host, KnownPlace& out) {
  const Image* image = image_of(host);
  if (image == nullptr) return false;
  for (const ImageVariant& variant : image->header().variants) {
    const uint64_t offset = host - image->base - variant.code_offset;
    if (offset >= variant.code_bytes) continue;
    const auto* places = image->at<const ImagePlace>(variant.places_offset);
    const auto* end = places + variant.places;
    const auto* found =
        std::lower_bound(places, end, offset, [](const ImagePlace& place, uint64_t o) { return place.code < o; });
    if (found == end || found->code != offset) return false;
    out = {image->text + static_cast<uint64_t>(int64_t{found->guest}),
           found->code,
           static_cast<emit::FlagForm>(found->flag_form),
           found->pf,
           found->af_a,
           found->af_b};
    return true;
  }
  return false;
}

void link_image_slot(uint64_t slot, uint64_t guest) {
  Image* image = image_of(slot);
  if (image == nullptr || image->retired) return;
  const ImageVariant& variant = image->header().variants[variant_in_use()];
  const uint64_t offset = slot - image->base - variant.slots_offset;
  if (offset / kSlotPairBytes >= variant.slot_pairs || offset % kSlotPairBytes != 0) return;
  auto* pair = reinterpret_cast<ImageSlotPair*>(slot);
  if (image->text + static_cast<uint64_t>(pair->target) != guest || pair->plain != 0 || pair->flags != 0) return;
  const CodeAddress code = find_code(guest);
  if (code.host == 0) return;
  // Resetting leaves records behind; they are few, and looked for only when some were.
  auto free = image->links.end();
  if (image->links.size() == image->links.capacity())
    free =
        std::find_if(image->links.begin(), image->links.end(), [](const LinkedPair& p) { return !p.record.linked; });
  if (free == image->links.end()) free = image->links.insert(free, LinkedPair{});
  *free = {{guest, {}, false}, &pair->plain};
  add_link({image->owner, static_cast<uint32_t>(free - image->links.begin())});
  ++counts.image_links;
  std::atomic_ref<uint64_t>(code.needs_flags ? pair->flags : pair->plain).store(code.host, std::memory_order_release);
}

bool retire_image_at(uint64_t host) {
  return retire_images_if([=](const Image& image) { return host >= image.base && host < image.end; });
}

bool retire_images_within(uint64_t start, uint64_t end) {
  if (phybin_image_table.load(std::memory_order_relaxed) == nullptr) return false;
  return retire_images_if([=](const Image& image) { return image.text < end && start < image.text_end; });
}

void images_after_fork_child() { readers.store(0); }

void switch_image_variants() {
  if (phybin_image_table.load(std::memory_order_relaxed) != nullptr) publish_table();
}

void free_passed_images(uint64_t passed) {
  if (readers.load() != 0) return;
  std::erase_if(old_tables, [=](const OldTable& old) {
    if (old.epoch > passed) return false;
    free(old.table);
    return true;
  });
  for (Image*& image : images) {
    if (image == nullptr || !image->retired || image->retire_epoch > passed) continue;
    forget_place(*image);
    unmap_worker_memory(reinterpret_cast<void*>(image->base), image->end - image->base);
    if (config.image_unmapped != nullptr) config.image_unmapped(image->base, image->end);
    delete image;
    image = nullptr;
  }
}

}  // namespace phybin::runtime
