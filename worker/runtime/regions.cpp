// See regions.h.
#include "worker/runtime/regions.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "proto/image_format.h"
#include "worker/runtime/code_index.h"
#include "worker/runtime/guarded_translate.h"
#include "worker/runtime/images.h"
#include "worker/runtime/thread.h"
#include "worker/runtime/write_watch.h"
#include "worker/translator/decode/instruction.h"

namespace phybin::runtime {

Config config;
Counters counts;
Lock code_lock;
std::atomic<uint64_t> code_epoch = 1;

namespace {

constexpr uint64_t kNeedsFlagsBit = uint64_t{1} << 63;
constexpr size_t kMaxChunks = 1 << 16;

// What a checked region was made from.
struct CheckedBytes {
  FlatArray<GuestRange> ranges;
  std::vector<uint8_t> bytes;  // range after range
};

CodeIndex index;
std::vector<RegionRecord> regions;
std::vector<Chunk*> chunks;  // by id; null once freed
size_t oldest_chunk = 0;     // all before are retired
Chunk* current_chunk = nullptr;
// Regions that are compared with the guest's bytes before each entry, by their first guest address.
std::unordered_map<uint64_t, uint32_t> checked_regions;
std::unordered_map<uint64_t, uint32_t> single_steps;
std::unordered_map<uint32_t, CheckedBytes> checked_bytes;  // by region
// Guest instructions whose ordered accesses are unaligned often.
std::unordered_set<uint64_t> unaligned_instructions;
std::atomic<bool> any_unaligned = false;

// Where chunks are, for readers without the lock; slots of freed chunks are used again.
std::atomic<uint64_t> chunk_places[kMaxChunks];
std::atomic<size_t> chunk_place_count = 0;

uint64_t encode(uint64_t host, ir::FlagMask live_in) { return host | (live_in != 0 ? kNeedsFlagsBit : 0); }
CodeAddress decode(uint64_t value) { return {value & ~kNeedsFlagsBit, (value & kNeedsFlagsBit) != 0, false}; }

std::span<const RegionEntry> entries_of(const RegionRecord& region) {
  return {chunks[region.chunk]->entries.data() + region.first_entry, region.entry_count};
}

uint64_t host_address(const RegionRecord& region, const RegionEntry& entry) {
  return reinterpret_cast<uint64_t>(chunks[region.chunk]->code) + region.offset + entry.code_offset;
}

CodeAddress checked_address(const RegionRecord& region) {
  const RegionEntry& entry = entries_of(region).front();
  return {host_address(region, entry), entry.live_in != 0, true};
}

void note_place(const Chunk& chunk) {
  const uint64_t address = reinterpret_cast<uint64_t>(chunk.code);
  const size_t count = chunk_place_count.load();
  for (size_t i = 0; i < count; ++i) {
    if (chunk_places[i].load() == 0) return chunk_places[i].store(address);
  }
  chunk_places[count].store(address);
  chunk_place_count.store(count + 1);
}

void forget_place(const Chunk& chunk) {
  for (size_t i = 0; i < chunk_place_count.load(); ++i) {
    if (chunk_places[i].load() == reinterpret_cast<uint64_t>(chunk.code)) chunk_places[i].store(0);
  }
}

Chunk* chunk_of(uint64_t host) {
  for (Chunk* chunk : chunks) {
    if (chunk != nullptr && host - reinterpret_cast<uint64_t>(chunk->code) < kChunkBytes) return chunk;
  }
  return nullptr;
}

const RegionRecord* region_of(const Chunk& chunk, uint64_t host) {
  const uint64_t offset = host - reinterpret_cast<uint64_t>(chunk.code);
  auto after = std::upper_bound(chunk.regions.begin(), chunk.regions.end(), offset,
                                [](uint64_t o, uint32_t id) { return o < regions[id].offset; });
  if (after == chunk.regions.begin()) return nullptr;
  const RegionRecord& region = regions[*--after];
  return offset < region.offset + region.bytes ? &region : nullptr;
}

void retire_region(uint32_t id) {
  RegionRecord& region = regions[id];
  if (region.retired) return;
  region.retired = true;
  ++counts.regions_invalidated;
  for (const RegionEntry& entry : entries_of(region)) {
    if (decode(index.find(entry.guest)).host == host_address(region, entry)) {
      index.remove(entry.guest);
      reset_links(entry.guest);
    }
  }
  if (region.checked) {
    const uint64_t guest = entries_of(region).front().guest;
    checked_bytes.erase(id);
    for (auto* map : {&checked_regions, &single_steps}) {
      auto found = map->find(guest);
      if (found != map->end() && found->second == id) map->erase(found);
    }
  }
}

void retire_chunk(Chunk& chunk) {
  for (uint32_t id : chunk.regions) retire_region(id);
  for (const SlotPairRecord& record : chunk.pairs) {
    if (record.linked) forget_links(record.target, chunk.id);
  }
  chunk.retired = true;
  chunk.retire_epoch = code_epoch.load() + 1;  // of the finish_retiring() that follows
  ++counts.chunks_retired;
  if (current_chunk == &chunk) current_chunk = nullptr;
}

// The oldest epoch that some thread may still be executing or pointing into.
uint64_t passed_by_all() {
  uint64_t oldest = code_epoch.load();
  for_each_thread(
      [](Thread& thread, void* data) {
        auto* result = static_cast<uint64_t*>(data);
        if (thread.in_code.load() != 0) *result = std::min(*result, thread.passed_epoch.load());
      },
      &oldest);
  return oldest;
}

// A chunk with room for the code; null without memory. May retire old chunks: the memory limit holds for what is in
// use, chunks that wait for a thread to pass come on top.
Chunk* chunk_with_room(const RegionCode& code) {
  if (current_chunk != nullptr && current_chunk->has_room(code.words.size() * 4, code.slot_pairs.size()))
    return current_chunk;
  free_passed();
  size_t in_use = 0;
  for (const Chunk* chunk : chunks) in_use += chunk != nullptr && !chunk->retired ? kChunkBytes : 0;
  bool retired = false;
  while (in_use != 0 && in_use + kChunkBytes > config.code_memory_limit) {
    Chunk* chunk = chunks[oldest_chunk++];
    if (chunk == nullptr || chunk->retired) continue;
    retire_chunk(*chunk);
    in_use -= kChunkBytes;
    retired = true;
  }
  if (retired) finish_retiring();
  Chunk* chunk = new_chunk(static_cast<uint32_t>(chunks.size()));
  if (chunk == nullptr) return nullptr;
  chunks.push_back(chunk);
  counts.code_memory += kChunkBytes;
  note_place(*chunk);
  return current_chunk = chunk;
}

// Notes what is known of places in code that begins at `offset` in the chunk.
void append_places(Chunk& chunk, const RegionCode& code, uint32_t offset) {
  const size_t before = chunk.places.size();
  chunk.places.set_size(before + code.locations.size());
  KnownPlace* place = chunk.places.data() + before;
  const ir::GuestInstruction* const instructions = code.instructions.data();
  for (const emit::LocationEntry& entry : code.locations) {
    *place++ = {instructions[entry.instruction].address,
                offset + entry.code_offset,
                entry.flag_form,
                entry.pf,
                entry.af_a,
                entry.af_b};
  }
}

// From now on the region is found by its entries, where nothing else was.
void insert_entries(const RegionRecord& region, const RegionCode& code) {
  const uint64_t start = reinterpret_cast<uint64_t>(chunks[region.chunk]->code) + region.offset;
  index.make_room(code.entries.size());
  for (const RegionEntry& entry : code.entries)
    index.insert_new_in_room(entry.guest, encode(start + entry.code_offset, entry.live_in));
}

// Publishes translated code; its id, or -1 without memory.
int64_t publish(const RegionCode& code) {
  Chunk* chunk = chunk_with_room(code);
  if (chunk == nullptr) return -1;
  const auto id = static_cast<uint32_t>(regions.size());
  RegionRecord record;
  record.chunk = chunk->id;
  record.offset = static_cast<uint32_t>(chunk->used);
  record.bytes = static_cast<uint32_t>(code.words.size() * 4);
  record.first_entry = static_cast<uint32_t>(chunk->entries.size());
  record.entry_count = static_cast<uint32_t>(code.entries.size());
  append_code(*chunk, code);
  chunk->regions.push_back(id);
  chunk->entries.append(code.entries.data(), code.entries.size());
  append_places(*chunk, code, record.offset);
  regions.push_back(record);
  watch_pages(code.guest_ranges, id);
  ++counts.regions;
  counts.guest_instructions += code.instructions.size();
  for (const GuestRange& range : code.guest_ranges) counts.guest_bytes += range.end - range.start;
  counts.code_bytes += record.bytes;
  if (config.trace_region != nullptr)
    config.trace_region({reinterpret_cast<const uint32_t*>(chunk->code + record.offset), code.words.size(), &code});
  return id;
}

TranslateInput translate_input(uint64_t guest, const GuestMapping& mapping) {
  TranslateInput input;
  input.pc = guest;
  input.window = {mapping.start, reinterpret_cast<const uint8_t*>(mapping.start), mapping.end - mapping.start};
  input.options = config.code;
  input.host = config.host;
  input.prefetch_depth = config.prefetch_depth;
  input.note_instructions = config.trace_region != nullptr;
  input.enter_anywhere = true;
  input.is_known = [](const void*, uint64_t address) {
    const CodeAddress code = find_code(address);
    return code.host != 0 && !code.needs_flags;
  };
  return input;
}

bool wants_barriers(const RegionCode& code) {
  if (!any_unaligned.load()) return false;
  CodeLock lock;
  return std::any_of(code.instructions.begin(), code.instructions.end(), [](const ir::GuestInstruction& instruction) {
    return unaligned_instructions.count(instruction.address) != 0;
  });
}

bool executable_mapping(uint64_t guest, GuestMapping& mapping) {
  return config.find_mapping(guest, mapping) && (mapping.protection & 4 /* PROT_EXEC */) != 0;
}

// The next image has barriers where this process had to make code with barriers.
void tell_translated(uint64_t guest, const GuestMapping& mapping, const RegionCode& code) {
  config.translated(mapping.module, mapping.offset + (guest - mapping.start), counts);
  if (!any_unaligned.load()) return;
  for (const ir::GuestInstruction& instruction : code.instructions) {
    const uint64_t offset = mapping.offset + (instruction.address - mapping.start);
    if (unaligned_instructions.count(instruction.address) != 0 && offset < proto::kUnalignedAccess)
      config.translated(mapping.module, offset | proto::kUnalignedAccess, counts);
  }
}

bool bytes_unchanged(const CheckedBytes& checked) {
  const uint8_t* expected = checked.bytes.data();
  for (const GuestRange& range : checked.ranges) {
    if (!guest_equals(range.start, expected, range.end - range.start)) return false;
    expected += range.end - range.start;
  }
  return true;
}

// How many instructions of a checked block may stand together: a store may change those behind it, so it is the last.
// Stores that no operand shows (PUSH, CALL, string operations) go to the stack, or end a block anyway.
unsigned instructions_up_to_store(uint64_t guest) {
  constexpr unsigned kMost = 32;
  GuestMapping mapping;
  if (!executable_mapping(guest, mapping)) return 1;
  uint8_t bytes[kMost * decode::kMaxInstructionLength];
  const size_t size = std::min<size_t>(sizeof bytes, mapping.end - guest);
  if (!copy_from_guest(bytes, guest, size)) return 1;
  size_t at = 0;
  for (unsigned count = 1; count < kMost; ++count) {
    decode::Instruction instruction;
    if (decode::decode(bytes + at, size - at, guest + at, instruction) != decode::DecodeStatus::kOk) return count;
    if (instruction.operand_count != 0 && instruction.operands[0].kind == decode::OperandKind::kMemory) return count;
    at += instruction.length;
  }
  return kMost;
}

// Code that is compared with the guest's bytes before each entry: what `map` holds for `guest`, if it is still right,
// or fresh.
CodeAddress find_checked(std::unordered_map<uint64_t, uint32_t>& map, uint64_t guest, unsigned max_instructions) {
  {
    CodeLock lock;
    auto found = map.find(guest);
    if (found != map.end()) {
      if (bytes_unchanged(checked_bytes[found->second])) {
        const CodeAddress code = checked_address(regions[found->second]);
        note_good_check(guest);
        return code;
      }
      retire_region(found->second);
    }
  }
  GuestMapping mapping;
  if (!executable_mapping(guest, mapping)) return {};
  TranslateInput input = translate_input(guest, mapping);
  input.single_block = true;
  input.enter_anywhere = false;
  input.is_known = nullptr;
  input.max_instructions = max_instructions;
  RegionCode code;
  CheckedBytes checked;
  std::vector<uint8_t>& bytes = checked.bytes;
  do {
    code = RegionCode{};
    bytes.clear();
    if (!guarded_translate(input, code)) return {};
    for (const GuestRange& range : code.guest_ranges) {
      const size_t at = bytes.size();
      bytes.resize(at + range.end - range.start);
      if (!copy_from_guest(bytes.data() + at, range.start, range.end - range.start)) return {};
    }
    // The copy counts only if the translator saw the same bytes: it is deterministic, so ask it again.
    RegionCode again;
    if (guarded_translate(input, again) && again.words == code.words) break;
  } while (true);
  checked.ranges = code.guest_ranges;
  CodeLock lock;
  const int64_t published = publish(code);
  if (published < 0) return {};
  const auto id = static_cast<uint32_t>(published);
  regions[id].checked = true;
  map[guest] = id;
  checked_bytes[id] = std::move(checked);
  return checked_address(regions[id]);
}

}  // namespace

const RegionRecord& region_record(uint32_t region) { return regions[region]; }

KnownPair pair_of_chunk(PairRef ref) {
  Chunk& chunk = *chunks[ref.owner];
  return {chunk.pairs[ref.pair], chunk.slot(ref.pair)};
}

CodeAddress find_code(uint64_t guest) {
  const CodeAddress code = decode(index.find(guest));
  return code.host != 0 ? code : find_in_images(guest);
}

const void* code_index_for_stubs() { return index.current_table(); }

CodeAddress find_or_translate(uint64_t guest) {
  CodeAddress found = find_code(guest);
  if (found.host != 0) return found;
  for (;;) {
    // Whether the page has become volatile since is asked again below.
    if (any_volatile_page()) {
      CodeLock lock;
      if (is_volatile_page(guest)) break;
    }
    const uint64_t generation = write_generation();
    if (config.before_translation != nullptr) config.before_translation();
    GuestMapping mapping;
    if (!executable_mapping(guest, mapping)) return {};
    BorrowedTranslator translator;
    TranslateInput input = translate_input(guest, mapping);
    const CodeOptions options = input.options;
    if (!translator.translate(input)) return {};
    if (!options.ordered_by_barriers && wants_barriers(translator.code())) {
      input.options.ordered_by_barriers = true;
      if (!translator.translate(input)) return {};
    }
    RegionCode& code = translator.code();
    const std::vector<WritablePage> writable = writable_pages(code.guest_ranges, mapping);

    CodeLock lock;
    found = find_code(guest);
    if (found.host != 0) return found;  // another thread was faster
    if (options != config.code) continue;
    if (reaches_volatile_page(writable)) break;
    // Bytes that can change count only if they were protected while they were read.
    const Protection protection = protect_pages(writable);
    if (protection == Protection::kNotNow) break;
    if (protection == Protection::kNew || generation != write_generation()) continue;
    const int64_t id = publish(code);
    if (id < 0) return {};
    RegionRecord& region = regions[id];
    region.has_barriers = input.options.ordered_by_barriers;
    insert_entries(region, code);
    if (mapping.module != 0 && config.translated != nullptr) tell_translated(guest, mapping, code);
    // A region begins with its first entry.
    const RegionEntry& entry = code.entries.front();
    return decode(encode(host_address(region, entry), entry.live_in));
  }
  return find_checked(checked_regions, guest, instructions_up_to_store(guest));
}

CodeAddress translate_single_step(uint64_t guest) { return find_checked(single_steps, guest, 1); }

void link_slot(uint64_t slot, uint64_t guest) {
  CodeLock lock;
  Chunk* chunk = chunk_of(slot);
  if (chunk == nullptr) return link_image_slot(slot, guest);
  if (chunk->retired) return;
  const uint64_t first = reinterpret_cast<uint64_t>(chunk->slot(0));
  const size_t pair = (slot - first) / kSlotPairBytes;
  if (slot < first || pair >= chunk->pairs.size()) return;
  SlotPairRecord& record = chunk->pairs[pair];
  if (record.target != guest || record.linked) return;
  const CodeAddress code = find_code(guest);
  if (code.host == 0) return;
  add_link({chunk->id, static_cast<uint32_t>(pair)});
  ++counts.slots_linked;
  std::atomic_ref<uint64_t>(chunk->slot(pair)[code.needs_flags ? 1 : 0]).store(code.host, std::memory_order_release);
}

void use_barriers(uint64_t host, uint64_t guest) {
  CodeLock lock;
  if (Chunk* chunk = chunk_of(host)) {
    const RegionRecord* region = region_of(*chunk, host);
    if (region == nullptr || region->retired || region->has_barriers) return;
    retire_region(static_cast<uint32_t>(region - regions.data()));
  } else if (!retire_image_at(host)) {
    return;
  }
  unaligned_instructions.insert(guest);
  any_unaligned.store(true);
  finish_retiring();
}

bool locate_code(uint64_t host, KnownPlace& out) {
  CodeLock lock;
  const Chunk* chunk = chunk_of(host);
  if (chunk == nullptr) return locate_in_images(host, out);
  const auto offset = static_cast<uint32_t>(host - reinterpret_cast<uint64_t>(chunk->code));
  auto found = std::lower_bound(chunk->places.begin(), chunk->places.end(), offset,
                                [](const KnownPlace& place, uint32_t o) { return place.offset < o; });
  if (found == chunk->places.end() || found->offset != offset) return false;
  out = *found;
  return true;
}

bool is_code_address(uint64_t host) {
  const size_t count = chunk_place_count.load();
  for (size_t i = 0; i < count; ++i) {
    const uint64_t place = chunk_places[i].load();
    if (place != 0 && host - place < kChunkBytes) return true;
  }
  return is_image_address(host);
}

void retire_regions(const std::vector<uint32_t>& list) {
  for (uint32_t id : list) retire_region(id);
}

void finish_retiring() {
  code_epoch.fetch_add(1);
  for_each_thread(
      [](Thread& thread, void*) {
        if (thread.in_code.load() != 0) raise_safepoint(thread);
      },
      nullptr);
}

void retire_private_code() {
  for (Chunk* chunk : chunks) {
    if (chunk != nullptr && !chunk->retired) retire_chunk(*chunk);
  }
  finish_retiring();
}

void free_passed() {
  const uint64_t passed = passed_by_all();
  for (Chunk*& chunk : chunks) {
    if (chunk == nullptr || !chunk->retired || chunk->retire_epoch > passed) continue;
    forget_place(*chunk);
    free_chunk(chunk);
    chunk = nullptr;
    counts.code_memory -= kChunkBytes;
  }
  free_passed_images(passed);
}

void regions_after_fork_child() {
  images_after_fork_child();
  current_chunk = nullptr;
  for (Chunk* chunk : chunks) {
    if (chunk != nullptr) close_chunk(*chunk);
  }
}

}  // namespace phybin::runtime
