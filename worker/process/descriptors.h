// The worker's own file descriptors. They stand as high as the limit allows, are closed on exec, and the guest can
// neither close nor replace them: to it they are not open.
#pragma once

namespace phybin::process {

enum class OwnDescriptor {
  kWorker,
  kProgram,
  kMessages,  // standard error as it was at the start, for --log and --stats: guests close theirs
  kCount
};

// Takes `fd` over, moved out of the way.
void keep_descriptor(OwnDescriptor which, int fd);
// -1 if there is none.
int own_descriptor(OwnDescriptor which);
// kMessages, or standard error.
int message_descriptor();
bool is_own_descriptor(int fd);
// The guest is about to replace `fd` (dup2): if it is one of ours, ours moves elsewhere first.
void make_way_for(int fd);

}  // namespace phybin::process
