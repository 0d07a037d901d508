// See variant.h.
//
// A direct exit of a region whose target is an entry of the variant becomes a plain branch to it, past or through the
// exit's cold half as the entry takes flags or not. All others go through a slot pair, of which there is one for each
// target, by a veneer behind their region:
//
//   veneer:  adrp x17, PAIR             cold half of the exit:  (flags canonical)
//            ldr  x16, [x17, PAIR]                              b    resolver
//            cbz  x16, 1f
//            br   x16                   resolver, one a pair:   adrp x17, PAIR
//         1: b    cold half                                     add  x17, x17, PAIR
//                                                               ldr  x30, [x28, kResolveSlot]
//                                                               br   x30
#include "worker/image/variant.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "worker/translator/decode/instruction.h"
#include "worker/translator/emit/homes.h"
#include "worker/translator/guest_state.h"
#include "worker/translator/translate.h"

namespace phybin::image {
namespace {

using emit::kScratch0;
using emit::kScratch1;
using emit::kScratch2;

// Where position-independent modules stand while they are translated: so that no address around them wraps.
constexpr uint64_t kBias = uint64_t{1} << 40;
constexpr unsigned kRegionAlignment = 4;  // words
constexpr unsigned kVeneerWords = 5, kResolverWords = 4;
// The quick tier's default: what it would have as an entry is one here.
constexpr unsigned kPrefetchDepth = 4;
constexpr uint64_t kMaxWords = proto::kMaxVariantCodeBytes / 4;
// Guest instructions that are translated at most, those that come to nothing included.
constexpr uint64_t kMaxInstructions = 16u << 20;

constexpr uint32_t kNop = 0xd503201f;
constexpr uint32_t adrp(uint32_t rd) { return 0x90000000 | rd; }
constexpr uint32_t add_imm(uint32_t rd, uint32_t rn) { return 0x91000000 | rn << 5 | rd; }
constexpr uint32_t ldr(uint32_t rt, uint32_t rn, uint32_t bytes) {
  return 0xf9400000 | bytes / 8 << 10 | rn << 5 | rt;
}
constexpr uint32_t br(uint32_t rn) { return 0xd61f0000 | rn << 5; }
constexpr uint32_t cbz(uint32_t rt, uint32_t words) { return 0xb4000000 | words << 5 | rt; }
constexpr uint32_t kBranch = 0x14000000;

struct Exit {
  uint32_t hot, cold, cold_branch;  // words from the region's start
  uint64_t target;                  // relative to the text, modulo 2^64
};

struct Region {
  uint32_t first_word, words;  // of Regions::words
  uint32_t first_exit, exits;
  uint32_t first_use, uses;
  uint32_t first_place, places;
};

struct Entry {
  uint32_t region, word;  // from the region's start
  bool takes_flags;
};

class Builder {
 public:
  Builder(const Module& module, Variant& variant)
      : module_(module), text_(module.text_address + (module.position_independent ? kBias : 0)), variant_(variant) {}

  void translate(const Profile& profile, const HostFeatures& host, const CodeOptions& options);
  void lay_out();

 private:
  static bool is_known(const void* builder, uint64_t guest) {
    const auto* self = static_cast<const Builder*>(builder);
    const auto found = self->entries_.find(guest - self->text_);
    return found != self->entries_.end() && !found->second.takes_flags;
  }
  bool can_start(uint64_t offset) const;
  bool holds_any(const RegionCode& code, const std::vector<uint32_t>& offsets) const;
  bool keep(const RegionCode& code);
  std::optional<uint64_t> continuation(const RegionCode& code) const;
  void place_regions();
  void link(const Region& region, uint32_t start);
  uint32_t pair_of(uint64_t target);
  void emit_resolvers();
  uint32_t here() const { return static_cast<uint32_t>(variant_.words.size()); }
  void branch(uint32_t from, uint32_t to) {
    variant_.words[from] = (variant_.words[from] & 0xfc000000) | ((to - from) & 0x03ffffff);
  }
  struct OpenWord {
    uint32_t word;
    CodeFixup::Kind kind;
    uint64_t value;
  };
  void add(const OpenWord& open) {
    variant_.fixups.push_back({open.kind, here() * 4, open.value});
    variant_.words.push_back(open.word);
  }

  const Module& module_;
  const uint64_t text_;  // guest address at which the text is translated
  Variant& variant_;
  // All regions as they were translated.
  std::vector<uint32_t> words_;
  std::vector<Region> regions_;
  std::vector<Exit> exits_;
  std::vector<AddressUse> uses_;                 // code_offset from the region's start
  std::vector<proto::ImagePlace> places_;        // likewise
  std::unordered_map<uint64_t, Entry> entries_;  // by offset in the text
  uint64_t room_ = kMaxWords;                    // words, veneers and alignment of what was kept taken off
  // While they are laid out.
  std::vector<uint32_t> starts_;  // of the regions, words of the variant
  std::unordered_map<uint64_t, uint32_t> pairs_;
  std::vector<std::pair<uint32_t, uint32_t>> to_resolvers_;  // word that goes to the resolver of a pair
};

// An instruction that the end of the text cuts off goes on in whatever the process has mapped there.
bool Builder::can_start(uint64_t offset) const {
  decode::Instruction instruction;
  return decode::decode(module_.text() + offset, module_.text_bytes - offset, text_ + offset, instruction) !=
         decode::DecodeStatus::kOutOfBytes;
}

void Builder::translate(const Profile& profile, const HostFeatures& host, const CodeOptions& options) {
  Translator translator;
  RegionCode code;
  TranslateInput input;
  input.window = {text_, module_.text(), module_.text_bytes};
  input.options = options;
  input.host = host;
  input.prefetch_depth = kPrefetchDepth;
  input.relative_addresses = module_.position_independent;
  input.open_exits = true;
  input.enter_anywhere = true;
  input.is_known = is_known;
  input.known_context = this;
  bool full = false;
  for (const uint32_t entry_point : profile.entry_points) {
    std::optional<uint64_t> offset = entry_point;
    while (offset) {
      input.pc = text_ + *offset;
      if (full || !can_start(*offset) || translator.translate(input, code) != TranslateStatus::kOk) {
        variant_.dropped += *offset == entry_point;
        break;
      }
      variant_.guest_instructions += code.instructions.size();
      if (options.memory_model == MemoryModel::kTso && holds_any(code, profile.unaligned)) {
        input.options.ordered_by_barriers = true;
        translator.translate(input, code);
        input.options.ordered_by_barriers = false;
      }
      if (!keep(code)) {
        full = true;
        variant_.dropped += *offset == entry_point;
      }
      if (variant_.guest_instructions > kMaxInstructions) full = true;
      offset = continuation(code);
    }
  }
}

// Where a long straight piece of code goes on that the region was too small for (unrolled ciphers and digests). What
// processes met there need not be what is missing: their own regions were cut elsewhere.
std::optional<uint64_t> Builder::continuation(const RegionCode& code) const {
  constexpr size_t kLong = 128;
  if (code.instructions.size() < kLong || code.guest_ranges.empty()) return std::nullopt;
  const uint64_t end = code.guest_ranges.back().end;
  const uint64_t offset = end - text_;
  if (offset >= module_.text_bytes || entries_.contains(offset)) return std::nullopt;
  const bool is_left_there =
      std::any_of(code.exits.begin(), code.exits.end(), [&](const OpenExit& exit) { return exit.target == end; });
  return is_left_there ? std::optional(offset) : std::nullopt;
}

bool Builder::holds_any(const RegionCode& code, const std::vector<uint32_t>& offsets) const {
  if (offsets.empty()) return false;
  return std::any_of(code.instructions.begin(), code.instructions.end(),
                     [&](const ir::GuestInstruction& instruction) {
                       return std::binary_search(offsets.begin(), offsets.end(), instruction.address - text_);
                     });
}

bool Builder::keep(const RegionCode& code) {
  const uint64_t needs =
      code.words.size() + kRegionAlignment + code.exits.size() * uint64_t{kVeneerWords + kResolverWords};
  if (needs > room_) return false;
  room_ -= needs;
  const auto id = static_cast<uint32_t>(regions_.size());
  regions_.push_back({static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(code.words.size()),
                      static_cast<uint32_t>(exits_.size()), static_cast<uint32_t>(code.exits.size()),
                      static_cast<uint32_t>(uses_.size()), static_cast<uint32_t>(code.address_uses.size()),
                      static_cast<uint32_t>(places_.size()), 0});
  words_.insert(words_.end(), code.words.begin(), code.words.end());
  for (const OpenExit& exit : code.exits)
    exits_.push_back({exit.hot / 4, exit.cold / 4, exit.cold_branch / 4, exit.target - text_});
  uses_.insert(uses_.end(), code.address_uses.begin(), code.address_uses.end());
  uint32_t last = UINT32_MAX;
  for (const emit::LocationEntry& l : code.locations) {
    if (l.code_offset == last) continue;
    last = l.code_offset;
    const uint64_t guest = code.instructions[l.instruction].address - text_;
    places_.push_back(
        {l.code_offset, static_cast<int32_t>(guest), static_cast<uint8_t>(l.flag_form), l.pf, l.af_a, l.af_b});
    ++regions_.back().places;
  }
  for (const RegionEntry& entry : code.entries) {
    // An entry point's own region goes further from there than one that has come to it on its way: what processes do
    // behind it is in there, without being an entry itself.
    const uint64_t offset = entry.guest - text_;
    const Entry value{id, entry.code_offset / 4, entry.live_in != 0};
    const bool is_start = &entry == &code.entries.front();
    const auto [found, is_new] = entries_.try_emplace(offset, value);
    if (is_new) variant_.entries.push_back({static_cast<uint32_t>(offset) + 1, 0});
    if (is_start) found->second = value;
  }
  return true;
}

uint32_t Builder::pair_of(uint64_t target) {
  const auto [found, is_new] = pairs_.try_emplace(target, static_cast<uint32_t>(variant_.targets.size()));
  if (is_new) variant_.targets.push_back(static_cast<int64_t>(target));
  return found->second;
}

// Where each region starts: behind the one before and its veneers.
void Builder::place_regions() {
  uint32_t at = 0;
  for (const Region& region : regions_) {
    starts_.push_back(at);
    uint32_t open = 0;
    for (uint32_t i = 0; i < region.exits; ++i) open += !entries_.contains(exits_[region.first_exit + i].target);
    at += region.words + open * kVeneerWords;
    at = (at + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
  }
}

void Builder::lay_out() {
  place_regions();
  for (uint32_t id = 0; id < regions_.size(); ++id) {
    const Region& region = regions_[id];
    variant_.words.resize(starts_[id], kNop);
    const auto words = words_.begin() + region.first_word;
    variant_.words.insert(variant_.words.end(), words, words + region.words);
    for (uint32_t i = 0; i < region.uses; ++i) {
      const AddressUse& use = uses_[region.first_use + i];
      variant_.fixups.push_back({CodeFixup::Kind::kAddressPage, starts_[id] * 4 + use.code_offset,
                                 module_.text_address + (use.guest - text_)});
    }
    for (uint32_t i = 0; i < region.places; ++i) {
      proto::ImagePlace place = places_[region.first_place + i];
      place.code += starts_[id] * 4;
      variant_.places.push_back(place);
    }
    link(region, starts_[id]);
  }
  emit_resolvers();
  for (VariantEntry& entry : variant_.entries) {
    const Entry& found = entries_.at(entry.key - 1);
    entry.code = (starts_[found.region] + found.word) * 4 | uint32_t{found.takes_flags};
  }
}

void Builder::link(const Region& region, uint32_t start) {
  for (uint32_t i = 0; i < region.exits; ++i) {
    const Exit& exit = exits_[region.first_exit + i];
    const uint32_t hot = start + exit.hot, cold = start + exit.cold, cold_branch = start + exit.cold_branch;
    const auto found = entries_.find(exit.target);
    if (found != entries_.end()) {
      const Entry& entry = found->second;
      const uint32_t to = starts_[entry.region] + entry.word;
      branch(hot, entry.takes_flags ? cold : to);
      branch(cold_branch, to);
      ++variant_.linked_exits;
      continue;
    }
    ++variant_.open_exits;
    const uint32_t pair = pair_of(exit.target);
    branch(hot, here());
    add({adrp(kScratch1), CodeFixup::Kind::kSlotPage, pair});
    add({ldr(kScratch0, kScratch1, 0), CodeFixup::Kind::kSlotLoad, pair});
    variant_.words.push_back(cbz(kScratch0, 2));
    variant_.words.push_back(br(kScratch0));
    variant_.words.push_back(kBranch);
    branch(here() - 1, cold);
    to_resolvers_.push_back({cold_branch, pair});
  }
}

void Builder::emit_resolvers() {
  const uint32_t first = here();
  for (uint32_t pair = 0; pair < variant_.targets.size(); ++pair) {
    add({adrp(kScratch1), CodeFixup::Kind::kSlotPage, pair});
    add({add_imm(kScratch1, kScratch1), CodeFixup::Kind::kSlotAdd, pair});
    constexpr auto kStub = offsetof(GuestState, stubs) + static_cast<unsigned>(Stub::kResolveSlot) * 8;
    variant_.words.push_back(ldr(kScratch2, emit::kState, kStub));
    variant_.words.push_back(br(kScratch2));
  }
  for (const auto& [word, pair] : to_resolvers_) branch(word, first + pair * kResolverWords);
}

}  // namespace

void build_variant(const Module& module, const Profile& profile, const HostFeatures& host, const CodeOptions& options,
                   Variant& variant) {
  Builder builder(module, variant);
  builder.translate(profile, host, options);
  builder.lay_out();
}

}  // namespace phybin::image
