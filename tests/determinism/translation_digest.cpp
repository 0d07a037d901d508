// Prints a digest of everything that the translator makes of the code in x86_64 ELF files. The same sources must
// print the same on every build host (docs/design.md, "Pure and deterministic"): tests/determinism/run compares this
// machine's build with the ARM64 one. With --each a line for every region as well, to find the one that differs.
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "tests/support/regions.h"

namespace phybin {
namespace {

// FNV-1a, over values and not over structures: padding has no defined content.
class Digest {
 public:
  void add(uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) {
      hash_ ^= value >> (8 * i) & 0xff;
      hash_ *= 0x100000001b3u;
    }
  }

  void add(const RegionCode& code) {
    add(code.words.size());
    for (const uint32_t word : code.words) add(word);
    for (const RegionEntry& e : code.entries) {
      add(e.guest);
      add(e.code_offset);
      add(e.live_in);
    }
    for (const SlotUse& s : code.slots) {
      add(s.code_offset);
      add(s.pair);
      add(s.is_adr);
    }
    for (const SlotPair& p : code.slot_pairs) add(p.target);
    for (const AddressUse& u : code.address_uses) {
      add(u.code_offset);
      add(u.guest);
    }
    for (const OpenExit& e : code.exits) {
      add(e.hot);
      add(e.cold);
      add(e.cold_branch);
      add(e.target);
    }
    for (const InstructionStart& s : code.starts) {
      add(s.code_offset);
      add(s.instruction);
    }
    for (const emit::LocationEntry& l : code.locations) {
      add(l.code_offset);
      add(l.instruction);
      add(static_cast<uint64_t>(l.flag_form));
      add(l.pf);
      add(l.af_a);
      add(l.af_b);
      add(l.is_poll);
    }
    for (const ir::GuestInstruction& i : code.instructions) {
      add(i.address);
      add(i.length);
    }
    for (const GuestRange& r : code.guest_ranges) {
      add(r.start);
      add(r.end);
    }
  }

  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

struct Variant {
  const char* name;
  HostFeatures host;
  CodeOptions options;
  bool for_image = false;
};

HostFeatures all_features() {
  HostFeatures host;
  host.crc32 = host.aes = host.pmull = host.sha1 = host.sha2 = true;
  host.lse = host.lrcpc = host.lrcpc2 = host.lse2 = host.flagm = host.flagm2 = host.frintts = true;
  host.tsc_shift = 6;
  return host;
}

CodeOptions tso() {
  CodeOptions options;
  options.memory_model = MemoryModel::kTso;
  return options;
}

bool print_digests(const char* path, bool each) {
  const Variant variants[] = {{"armv8.0", {}, {}}, {"all-tso", all_features(), tso()}, {"image", {}, {}, true}};
  const std::vector<test::CodeSection> sections = test::code_sections(path);
  if (sections.empty()) {
    std::fprintf(stderr, "translation_digest: %s holds no x86_64 code\n", path);
    return false;
  }
  for (const Variant& variant : variants) {
    Digest digest;
    uint64_t regions = 0, words = 0;
    for (const test::CodeSection& section : sections) {
      TranslateInput input = test::region_input(section, section.address);
      input.host = variant.host;
      input.options = variant.options;
      input.relative_addresses = input.open_exits = input.note_instructions = variant.for_image;
      input.enter_anywhere = variant.for_image;
      test::for_each_region(section, input, [&](const TranslateInput& at, TranslateStatus, const RegionCode& code) {
        digest.add(code);
        if (each) {
          Digest one;
          one.add(code);
          std::printf("%s %" PRIx64 " %016" PRIx64 "\n", variant.name, at.pc, one.value());
        }
        ++regions;
        words += code.words.size();
        return true;
      });
    }
    std::printf("%s %s %" PRIu64 " regions %" PRIu64 " words %016" PRIx64 "\n", path, variant.name, regions, words,
                digest.value());
  }
  return true;
}

}  // namespace
}  // namespace phybin

int main(int argc, char** argv) {
  const bool each = argc > 1 && std::strcmp(argv[1], "--each") == 0;
  bool ok = true;
  for (int i = each ? 2 : 1; i < argc; ++i) ok = phybin::print_digests(argv[i], each) && ok;
  return ok ? 0 : 1;
}
