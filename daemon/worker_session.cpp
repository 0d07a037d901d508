// See worker_session.h.
#include "daemon/worker_session.h"

#include <cstring>
#include <utility>

#include "daemon/daemon.h"
#include "daemon/log.h"

namespace phybin::daemon {
namespace {

using proto::MessageKind;

// Copies a message of fixed size. False: it is not one.
template <typename Message>
bool read_message(std::string_view bytes, Message& message) {
  if (bytes.size() != sizeof message) return false;
  memcpy(&message, bytes.data(), sizeof message);
  return message.header.bytes == sizeof message;
}

}  // namespace

WorkerSession::WorkerSession(Daemon& daemon, Connection& connection) : daemon_(daemon), connection_(connection) {}

WorkerSession::~WorkerSession() = default;

void WorkerSession::receive(std::string_view bytes, std::vector<Descriptor> files) {
  proto::MessageHeader header;
  if (bytes.size() < sizeof header) return connection_.end("a message is too short");
  memcpy(&header, bytes.data(), sizeof header);
  proto::Hello hello_message;
  proto::ModuleMet module_message;
  if (header.version != proto::kProtocolVersion) {
    connection_.end("it speaks version " + std::to_string(header.version) + " of the protocol");
  } else if (header.kind == MessageKind::kHello && !welcomed_ && read_message(bytes, hello_message)) {
    return hello(hello_message, std::move(files));
  } else if (header.kind == MessageKind::kModule && welcomed_ && read_message(bytes, module_message)) {
    return module_met(module_message, std::move(files));
  } else {
    connection_.end("a message that makes no sense");
  }
  daemon_.closer.close_all(std::move(files));
}

void WorkerSession::hello(const proto::Hello& message, std::vector<Descriptor> files) {
  daemon_.closer.close_all(std::move(files));
  subject_ = {printable(std::string_view(message.name, strnlen(message.name, sizeof message.name))),
              connection_.peer().uid, message.cpu, message.wanted};
  if (message.wanted > proto::CachePolicy::kAuto) return connection_.end("an unknown policy");
  welcomed_ = true;
  ++daemon_.counters.workers;
  const Descriptor page = memory_.create();
  if (!page) return connection_.end(std::string("no page for it: ") + strerror(errno));
  member_ = daemon_.policy.join(subject_, connection_.peer().pid, memory_.page(), false);
  proto::Welcome welcome{};
  welcome.header = {MessageKind::kWelcome, 0, proto::kProtocolVersion, sizeof welcome};
  welcome.policy_index = daemon_.policy.word(*member_);
  const int pages[] = {daemon_.policy_memory.file(), page.get()};
  connection_.send(&welcome, sizeof welcome, pages, proto::kWelcomePages);
}

void WorkerSession::module_met(const proto::ModuleMet&, std::vector<Descriptor> files) {
  daemon_.closer.close_all(std::move(files));
}

void WorkerSession::ended() {
  if (member_ != nullptr) daemon_.policy.leave(std::exchange(member_, nullptr));
}

}  // namespace phybin::daemon
