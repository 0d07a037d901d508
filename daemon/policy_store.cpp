// See policy_store.h.
#include "daemon/policy_store.h"

#include <cstdio>
#include <cstring>
#include <vector>

namespace phybin::daemon {
namespace {

// A setting for all programs has an empty name, one for all users the user -1: NULLs would not be unique.
constexpr char kTables[] =
    "CREATE TABLE IF NOT EXISTS settings (program TEXT NOT NULL, uid INTEGER NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY (program, uid)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS history (program TEXT NOT NULL, uid INTEGER NOT NULL, instructions INTEGER NOT NULL,"
    " private_bytes INTEGER NOT NULL, seconds BLOB NOT NULL, seen INTEGER NOT NULL, PRIMARY KEY (program, uid)) "
    "WITHOUT ROWID;";

std::string program_column(const PolicyScope& scope) { return scope.program.value_or(""); }
int64_t uid_column(const PolicyScope& scope) { return scope.uid ? static_cast<int64_t>(*scope.uid) : -1; }

}  // namespace

void PolicyStore::read(PolicySettings& settings, RunHistory& history) {
  database_.run(kTables);
  Statement rows = database_.prepare("SELECT program, uid, value FROM settings");
  rows();
  while (rows.row()) {
    PolicyScope scope;
    if (std::string program = rows.text(0); !program.empty()) scope.program = std::move(program);
    if (rows.integer(1) >= 0) scope.uid = static_cast<uint32_t>(rows.integer(1));
    if (const auto value = parse_policy(rows.text(2))) settings.set(scope, *value);
  }
  Statement runs =
      database_.prepare("SELECT program, uid, instructions, private_bytes, seconds FROM history ORDER BY seen");
  runs();
  while (runs.row()) {
    RunHistory::Program program;
    program.instructions = runs.number(2);
    program.private_bytes = runs.number(3);
    const std::string_view seconds = runs.blob(4);
    for (size_t at = 0; at + sizeof(double) <= seconds.size() && program.runs.size() < RunHistory::kRuns;
         at += sizeof(double)) {
      Run run;
      memcpy(&run.seconds, seconds.data() + at, sizeof(double));
      if (run.seconds >= 0 && run.seconds < 1e12) program.runs.push_back(run);
    }
    history.restore({runs.text(0), static_cast<uint32_t>(runs.integer(1))}, std::move(program));
  }
}

std::string PolicyStore::open(const std::string& file, PolicySettings& settings, RunHistory& history) {
  std::string damaged;
  try {
    database_.open(file);
    read(settings, history);
    return {};
  } catch (const SqliteError& error) {
    if (!error.damaged()) return file + ": " + error.what();
    damaged = error.what();
  }
  try {
    database_.close();
    rename(file.c_str(), (file + ".damaged").c_str());
    database_.open(file);
    database_.run(kTables);
    return file + ": " + damaged + "; begun anew, settings are lost";
  } catch (const SqliteError& error) {
    database_.close();
    return file + ": " + error.what();
  }
}

std::string PolicyStore::set(const PolicyScope& scope, proto::CachePolicy value) {
  if (!database_.is_open()) return {};
  try {
    const std::string program = program_column(scope), name = policy_name(value);
    database_.prepare("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)")(program, uid_column(scope), name).run();
    return {};
  } catch (const SqliteError& error) {
    return error.what();
  }
}

std::string PolicyStore::unset(const PolicyScope& scope) {
  if (!database_.is_open()) return {};
  try {
    const std::string program = program_column(scope);
    database_.prepare("DELETE FROM settings WHERE program = ? AND uid = ?")(program, uid_column(scope)).run();
    return {};
  } catch (const SqliteError& error) {
    return error.what();
  }
}

std::string PolicyStore::save(RunHistory& history) {
  if (!database_.is_open()) return {};
  try {
    Statement insert = database_.prepare("INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?, ?, unixepoch())");
    database_.run("BEGIN");
    history.for_changed([&](const RunHistory::Key& key, const RunHistory::Program& program) {
      std::vector<double> seconds;
      for (const Run& run : program.runs) seconds.push_back(run.seconds);
      const Blob blob{seconds.data(), seconds.size() * sizeof(double)};
      insert(key.first, key.second, program.instructions, program.private_bytes, blob).run();
    });
    database_
        .prepare(
            "DELETE FROM history WHERE (program, uid) IN"
            " (SELECT program, uid FROM history ORDER BY seen DESC LIMIT -1 OFFSET ?)")(
            static_cast<uint64_t>(RunHistory::kPrograms))
        .run();
    database_.run("COMMIT");
    return {};
  } catch (const SqliteError& error) {
    return error.what();
  }
}

}  // namespace phybin::daemon
