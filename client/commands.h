// What each command does. The table of commands (commands.cpp) names these; each prints its result to stdout, what
// went wrong to stderr, and returns an ExitStatus.
#pragma once

#include "client/arguments.h"

namespace phybin::client {

int run_status(const Arguments& arguments);
int run_settle(const Arguments& arguments);
int run_top(const Arguments& arguments);
int run_policy_get(const Arguments& arguments);
int run_policy_set(const Arguments& arguments);
int run_policy_unset(const Arguments& arguments);
int run_cache_list(const Arguments& arguments);
int run_cache_show(const Arguments& arguments);
int run_cache_verify(const Arguments& arguments);
int run_cache_purge(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_gpu(const Arguments& arguments);
int run_maintenance(const Arguments& arguments);
int run_metrics(const Arguments& arguments);
int run_config_check(const Arguments& arguments);
int run_cache_export(const Arguments& arguments);
int run_cache_import(const Arguments& arguments);
int run_key_generate(const Arguments& arguments);

}  // namespace phybin::client
