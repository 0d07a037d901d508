// What makes one translation differ from another: the translator itself, the options and the host's features, in the
// form in which images (proto/image_format.h) carry them.
#pragma once

#include <cstdint>

#include "proto/image_format.h"
#include "worker/translator/host_features.h"

namespace phybin {

// Of the translator's sources, the same on every build machine.
extern const proto::Digest kTranslatorBuild;

// ImageHeader::host_features, ImageHeader::code_options.
uint32_t host_feature_bits(const HostFeatures& host);
HostFeatures host_features_of(uint32_t bits);
uint32_t code_option_bits(const CodeOptions& options);

}  // namespace phybin
