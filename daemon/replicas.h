// Copies of images, one for each memory node (NUMA) that runs enough programs from them:
// CACHE/copies/ID.GENERATION.nodeN.img. A copy is written by a thread that is bound to the CPUs of its node, so its
// pages in the page cache lie there. Which copies are worth their memory says the cost model (policy_model.h,
// docs/policy.md).
//
// On a machine of one node there are none. Copies live as long as the daemon: at its start all are removed and made
// again when they are wanted; workers that have one mapped keep it. The original counts as far from every node: who
// wrote it, and so where it lies, is not known.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <map>
#include <string>
#include <vector>

#include "daemon/config.h"
#include "daemon/descriptor.h"
#include "daemon/images.h"
#include "daemon/policy_model.h"
#include "daemon/topology.h"

namespace phybin::daemon {

class Replicas {
 public:
  Replicas(boost::asio::io_context& io, const Topology& topology, const Config& config);
  ~Replicas();

  // Empties the folder of copies. An empty string, or what is wrong: then there are no copies.
  std::string open(const std::string& cache_dir);

  // Who runs from an image, in the last round: programs on each node, and the CPU seconds that one is expected to
  // need.
  struct Use {
    std::vector<unsigned> instances;  // by index of the node
    double seconds = 0;               // of all of them together
  };
  // Makes the copies that are worth it, and removes those of images that are gone or replaced.
  void update(const std::map<int64_t, Use>& uses, const Images& images, const CostModel& model);

  // A descriptor of the copy for that node; none if there is no good one.
  Descriptor hand_out(const ImageRow& row, unsigned node);
  unsigned copies_of(int64_t image) const;
  uint64_t total_bytes() const { return total_bytes_; }
  // Copies may take this part of what images may.
  static constexpr uint64_t kShareOfCache = 4;
  bool idle() const { return under_way_ == 0; }

 private:
  struct Key {
    int64_t image;
    int64_t generation;
    unsigned node;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Copy {
    uint64_t bytes = 0;
    bool ready = false, failed = false;  // neither: being made; failed ones are not tried again
    proto::FileKey stat{};               // when it was found good
  };

  std::string path_of(const Key& key) const;
  void make(const Key& key, const std::string& original, uint64_t bytes);
  void remove(std::map<Key, Copy>::iterator copy);

  boost::asio::io_context& io_;
  const Topology& topology_;
  const Config& config_;
  boost::asio::thread_pool pool_{1};
  std::string folder_;  // empty: no copies
  std::map<Key, Copy> copies_;
  uint64_t total_bytes_ = 0;
  unsigned under_way_ = 0;
};

}  // namespace phybin::daemon
