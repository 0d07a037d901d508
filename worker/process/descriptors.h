// The worker's own file descriptors. They stand as high as the limit allows, are closed on exec, and the guest can
// neither close nor replace them: to it they are not open.
#pragma once

namespace phybin::process {

enum class OwnDescriptor {
  kWorker,
  kProgram,
  kMessages,  // standard error as it was at the start, for --log and --stats: guests close theirs
  kDaemon,    // the connection to the daemon
  kFirstImage,
  kCount = kFirstImage + 128
};

// For image number `index` among those that are kept open; there are max_image_descriptors(), fewer where the process
// may have few descriptors.
inline OwnDescriptor image_descriptor(unsigned index) {
  return static_cast<OwnDescriptor>(static_cast<unsigned>(OwnDescriptor::kFirstImage) + index);
}
unsigned max_image_descriptors();

// Takes `fd` over, moved out of the way.
void keep_descriptor(OwnDescriptor which, int fd);
void close_descriptor(OwnDescriptor which);
// -1 if there is none.
int own_descriptor(OwnDescriptor which);
// kMessages, or standard error.
int message_descriptor();
bool is_own_descriptor(int fd);
// The guest is about to replace `fd` (dup2): if it is one of ours, ours moves elsewhere first.
void make_way_for(int fd);

}  // namespace phybin::process
