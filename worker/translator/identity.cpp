// See identity.h.
#include "worker/translator/identity.h"

#include <iterator>

#include "translator_build.h"

namespace phybin {
namespace {

// In the order of the fields: a bit keeps its meaning for as long as images exist.
constexpr bool HostFeatures::*kFeatures[] = {
    &HostFeatures::crc32, &HostFeatures::aes,   &HostFeatures::pmull,  &HostFeatures::sha1,
    &HostFeatures::sha2,  &HostFeatures::lse,   &HostFeatures::lrcpc,  &HostFeatures::lrcpc2,
    &HostFeatures::lse2,  &HostFeatures::flagm, &HostFeatures::flagm2, &HostFeatures::frintts,
};
static_assert(sizeof(HostFeatures) == std::size(kFeatures) + sizeof(HostFeatures::tsc_shift));
static_assert(std::size(kFeatures) <= proto::kTscShiftBit);

}  // namespace

extern const proto::Digest kTranslatorBuild = PHYBIN_TRANSLATOR_BUILD;

uint32_t host_feature_bits(const HostFeatures& host) {
  uint32_t bits = static_cast<uint32_t>(host.tsc_shift) << proto::kTscShiftBit, bit = 1;
  for (auto feature : kFeatures) {
    if (host.*feature) bits |= bit;
    bit <<= 1;
  }
  return bits;
}

HostFeatures host_features_of(uint32_t bits) {
  HostFeatures host;
  host.tsc_shift = static_cast<uint8_t>(bits >> proto::kTscShiftBit);
  for (auto feature : kFeatures) {
    host.*feature = (bits & 1) != 0;
    bits >>= 1;
  }
  return host;
}

uint32_t code_option_bits(const CodeOptions& options) {
  return (options.fast_math ? proto::kOptionFastMath : 0u) | (options.sse_check ? 0u : proto::kOptionNoSseCheck);
}

}  // namespace phybin
