// See sqlite.h.
#include "daemon/sqlite.h"

namespace phybin::daemon {
namespace {

[[noreturn]] void fail(sqlite3* database, int code) {
  throw SqliteError(code, database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code));
}

}  // namespace

Statement::Statement(sqlite3* database, const char* text) {
  const int result = sqlite3_prepare_v3(database, text, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (result != SQLITE_OK) fail(database, result);
}

void Statement::check(int result) const {
  if (result != SQLITE_OK) fail(sqlite3_db_handle(statement_), result);
}

bool Statement::row() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  sqlite3_reset(statement_);
  if (result != SQLITE_DONE) fail(sqlite3_db_handle(statement_), result);
  return false;
}

void Statement::run() {
  while (row()) {
  }
}

std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return data != nullptr ? std::string(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : "";
}

std::string_view Statement::blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return {data, data != nullptr ? static_cast<size_t>(sqlite3_column_bytes(statement_, column)) : 0};
}

void Database::open(const std::string& path) {
  const int result = sqlite3_open_v2(path.c_str(), &handle_,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (result != SQLITE_OK) {
    const std::string text = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(result);
    close();
    throw SqliteError(result, path + ": " + text);
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, 2000);
}

void Database::close() {
  sqlite3_close_v2(handle_);
  handle_ = nullptr;
}

void Database::run(const char* text) {
  char* message = nullptr;
  const int result = sqlite3_exec(handle_, text, nullptr, nullptr, &message);
  if (result == SQLITE_OK) return;
  const std::string why = message != nullptr ? message : sqlite3_errstr(result);
  sqlite3_free(message);
  throw SqliteError(result, why);
}

}  // namespace phybin::daemon
