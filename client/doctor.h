// phybinctl doctor: is this machine set up such that x86_64 programs run well? Each subject has a file
// doctor_SUBJECT.cpp with its checks; doctor.cpp has the list of them and prints what they found.
#pragma once

#include <string>
#include <vector>

#include "client/arguments.h"
#include "client/host_tree.h"

namespace phybin::client {

// kWarn: programs run, but slower than they could, or not all of them. kFail: they do not, or it is against the
// rules.
enum class Health { kOk, kWarn, kFail };

struct Finding {
  std::string check;  // its name, for scripts
  Health health;
  std::string text;    // what is the case
  std::string advice;  // what to do; empty when all is well
};

class Findings {
 public:
  void ok(std::string check, std::string text) { add({std::move(check), Health::kOk, std::move(text), {}}); }
  void warn(std::string check, std::string text, std::string advice) {
    add({std::move(check), Health::kWarn, std::move(text), std::move(advice)});
  }
  void fail(std::string check, std::string text, std::string advice) {
    add({std::move(check), Health::kFail, std::move(text), std::move(advice)});
  }
  const std::vector<Finding>& all() const { return all_; }

 private:
  void add(Finding finding) { all_.push_back(std::move(finding)); }

  std::vector<Finding> all_;
};

struct Patient {
  const HostTree& host;
  const Arguments& arguments;
};

// A check adds at least one finding.
using CheckFunction = void (*)(const Patient& patient, Findings& findings);

void check_cpu(const Patient& patient, Findings& findings);
void check_kernel(const Patient& patient, Findings& findings);
void check_page_size(const Patient& patient, Findings& findings);
void check_sysctls(const Patient& patient, Findings& findings);
void check_binfmt(const Patient& patient, Findings& findings);
void check_pci_bars(const Patient& patient, Findings& findings);
void check_virtual_display(const Patient& patient, Findings& findings);
void check_gpu_power(const Patient& patient, Findings& findings);
void check_gpu_access(const Patient& patient, Findings& findings);
void check_configuration(const Patient& patient, Findings& findings);
void check_loader(const Patient& patient, Findings& findings);
void check_daemon(const Patient& patient, Findings& findings);
void check_run_by_kernel(const Patient& patient, Findings& findings);
void check_run_by_worker(const Patient& patient, Findings& findings);

}  // namespace phybin::client
