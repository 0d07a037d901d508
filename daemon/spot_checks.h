// Images that came in from elsewhere are spot-checked: translated again from the module on this machine, with the
// entry points that they were made from. The translator is deterministic, so the result must be the same, byte for
// byte.
//
// One at a time, beside the jobs that make images, in the same cage. Event thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/children.h"
#include "daemon/images.h"
#include "daemon/modules.h"

namespace phybin::daemon {

enum class SpotResult : uint8_t { kSame, kDifferent, kUnknown };  // unknown: it could not be translated

struct SpotCheck {
  ImageKey key;
  Digest file_sha256{};  // of the image that came in
  std::shared_ptr<Module> module;
  std::vector<uint32_t> entries;
  uid_t user = 0;  // who has brought it
  std::function<void(SpotResult)> done;
};

class SpotChecks {
 public:
  SpotChecks(boost::asio::io_context& io, boost::asio::thread_pool& pool, Children& children, FileReader& reader,
             Images& images, const Config& config, std::string compiler);
  ~SpotChecks();

  // False, and nothing happens, if the module is not at hand.
  bool check(SpotCheck check);
  bool idle() const { return queue_.empty() && !running_; }
  void stop();

 private:
  struct Running;

  void begin_next();
  void compile(Descriptor module_copy);
  void ended(int status);
  void finish(SpotResult result);

  boost::asio::io_context& io_;
  boost::asio::thread_pool& pool_;
  Children& children_;
  FileReader& reader_;
  Images& images_;
  const Config& config_;
  std::string compiler_;
  std::deque<SpotCheck> queue_;
  std::unique_ptr<Running> running_;
  bool stopped_ = false;
};

}  // namespace phybin::daemon
