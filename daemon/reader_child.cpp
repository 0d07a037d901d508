// A reader process: looks at files of clients, hashes and copies them. What it is given may be on FUSE or a network,
// so any of its system calls may hang; the daemon then kills it and starts another (file_reader.h).
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "daemon/descriptor.h"
#include "daemon/files.h"
#include "daemon/pages.h"
#include "daemon/reader_protocol.h"
#include "proto/socket.h"

namespace phybin::daemon {
namespace {

// File systems whose files do not change without their stat data changing. The others (network, FUSE, stacks of
// unknown things) are read each time.
struct FileSystem {
  uint32_t type;       // statfs.f_type
  bool everyone;       // a user cannot make one that shows root's files
  bool id_is_certain;  // f_fsid comes from a UUID and not from a device number, which another disk may get
};
constexpr FileSystem kFileSystems[] = {
    {0xef53, true, true},        // ext2, ext3, ext4
    {0x58465342, true, false},   // xfs
    {0x9123683e, true, true},    // btrfs
    {0xf2f52010, true, false},   // f2fs
    {0x2fc12fc1, true, true},    // zfs
    {0xca451a4e, true, true},    // bcachefs
    {0x01021994, false, false},  // tmpfs
    {0x794c7630, false, false},  // overlayfs: containers
};

// A file changed so recently may change again without its times changing: clocks of file systems tick slowly.
constexpr int64_t kSettledNs = 2'000'000'000;

struct FileSystemUuid {  // fsuuid2, Linux 6.9
  uint8_t bytes;
  uint8_t uuid[16];
};
constexpr unsigned long kGetUuid = _IOR(0x15, 0, FileSystemUuid);

int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

// Of the present boot; none where /proc does not say.
std::optional<Digest> boot_id() {
  char text[64] = {};
  const Descriptor file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  const ssize_t count = file ? read(file.get(), text, sizeof text) : 0;
  if (count <= 0) return std::nullopt;
  Sha256 hash;
  hash.add(text, static_cast<size_t>(count));
  return hash.finish();
}

// None: another file system may get the same name.
std::optional<Digest> name_file_system(int file, const struct statfs& status, const FileSystem& known) {
  Sha256 hash;
  hash.add(&status.f_type, sizeof status.f_type);
  FileSystemUuid uuid{};
  if (ioctl(file, kGetUuid, &uuid) == 0 && uuid.bytes == sizeof uuid.uuid) {
    hash.add(uuid.uuid, sizeof uuid.uuid);
  } else {
    hash.add(&status.f_fsid, sizeof status.f_fsid);
    if (!known.id_is_certain) {
      static const std::optional<Digest> boot = boot_id();
      if (!boot) return std::nullopt;
      hash.add(boot->data(), boot->size());
    }
  }
  return hash.finish();
}

// 0 or an errno.
int examine(int file, FileFacts& facts) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  struct stat status;
  struct statfs system;
  if (fstat(file, &status) != 0 || fstatfs(file, &system) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  facts = {};
  facts.key = {status.st_dev, status.st_ino, static_cast<uint64_t>(status.st_size), nanoseconds(status.st_mtim),
               nanoseconds(status.st_ctim)};
  facts.owner = status.st_uid;
  const auto* known = std::find_if(std::begin(kFileSystems), std::end(kFileSystems), [&](const FileSystem& entry) {
    return entry.type == static_cast<uint32_t>(system.f_type);
  });
  if (known == std::end(kFileSystems)) return 0;
  const std::optional<Digest> name = name_file_system(file, system, *known);
  if (!name) return 0;
  facts.file_system = *name;
  facts.memorable = facts.key.changed_ns + kSettledNs < nanoseconds(now);
  // A medium that a user may mount, a stick say, is mounted nosuid.
  facts.everyone = facts.memorable && known->everyone && status.st_uid == 0 && (status.st_mode & 022) == 0 &&
                   (static_cast<unsigned long>(system.f_flags) & ST_NOSUID) == 0;
  return 0;
}

int read_whole(int file, uint64_t size, int copy, Digest& digest) {
  constexpr size_t kChunk = 1 << 20;
  static std::vector<char> buffer(kChunk);
  Sha256 hash;
  for (uint64_t done = 0; done != size;) {
    // At its own offset: the client's is shared with us.
    const ssize_t count =
        pread(file, buffer.data(), std::min<uint64_t>(kChunk, size - done), static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return ESTALE;
    hash.add(buffer.data(), static_cast<size_t>(count));
    if (copy >= 0) {
      if (const int error = write_all(copy, buffer.data(), static_cast<size_t>(count)); error != 0) return error;
    }
    done += static_cast<uint64_t>(count);
  }
  digest = hash.finish();
  return 0;
}

// Opens a file that a user once showed under this name. What is there now may be anything, so it is looked at before
// it is opened: opening some devices has consequences.
int open_path(const char* path, Descriptor& file) {
  const Descriptor found(open(path, O_PATH | O_CLOEXEC));
  struct stat status;
  if (!found || fstat(found.get(), &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  file.reset(open(("/proc/self/fd/" + std::to_string(found.get())).c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  return file ? 0 : errno;
}

void serve(const ReadRequest& request, int file, ReadReply& reply, Descriptor& copy) {
  reply.error = examine(file, reply.facts);
  if (reply.error != 0 || request.kind == ReadKind::kExamine) return;
  if (reply.facts.key.size > request.limit) {
    reply.error = EFBIG;
    return;
  }
  if (request.kind == ReadKind::kCopy) {
    auto memory = make_memory_file("phybin-module");
    if (!memory) {
      reply.error = errno;
      return;
    }
    copy = std::move(*memory);
  }
  reply.error = read_whole(file, reply.facts.key.size, copy.get(), reply.digest);
  if (reply.error != 0) return;
  FileFacts after;
  reply.error = examine(file, after);
  if (reply.error == 0 && !(after.key == reply.facts.key)) reply.error = ESTALE;
  if (copy && fcntl(copy.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    reply.error = errno;
  }
}

}  // namespace

int run_reader(int socket) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  for (;;) {
    ReadRequest request{};
    int files[proto::kMaxDescriptors];
    proto::Received received;
    if (proto::receive_message(socket, &request, sizeof request, files, 0, received) != 0) return 1;
    if (received.bytes == 0) return 0;
    if (received.bytes != sizeof request || received.descriptors > 1) return 1;
    Descriptor file(received.descriptors == 1 ? files[0] : -1);
    ReadReply reply;
    Descriptor copy;
    if (!file) reply.error = open_path(request.path, file);
    if (reply.error == 0) serve(request, file.get(), reply, copy);
    const int given = copy.get();
    if (reply.error != 0) copy.reset();
    if (proto::send_message(socket, &reply, sizeof reply, &given, copy ? 1 : 0, 0) != 0) return 1;
    // Last: this may hang as well, and the answer is out.
    file.reset();
  }
}

}  // namespace phybin::daemon
