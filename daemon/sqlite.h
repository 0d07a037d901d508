// SQLite with owners and exceptions; nothing of the daemon's.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace phybin::daemon {

struct SqliteError : std::runtime_error {
  SqliteError(int code_given, const std::string& text) : std::runtime_error(text), code(code_given) {}
  int code;
  // The file is not what SQLite wrote; nothing but a new one helps.
  bool damaged() const { return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB; }
};

struct Blob {
  const void* data;
  size_t bytes;
};

class Statement {
 public:
  Statement() = default;
  Statement(sqlite3* database, const char* text);
  Statement(Statement&& other) noexcept : statement_(other.statement_) { other.statement_ = nullptr; }
  Statement& operator=(Statement&& other) noexcept {
    std::swap(statement_, other.statement_);
    return *this;
  }
  ~Statement() { sqlite3_finalize(statement_); }

  // Binds all parameters, in order, and starts over.
  template <typename... Values>
  Statement& operator()(const Values&... values) {
    sqlite3_reset(statement_);
    int index = 0;
    (bind(++index, values), ...);
    return *this;
  }
  // The next row; false: no more, and the statement is reset.
  bool row();
  void run();  // for statements without rows

  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  uint64_t number(int column) const { return static_cast<uint64_t>(integer(column)); }
  std::string text(int column) const;
  // Valid until the next call.
  std::string_view blob(int column) const;

 private:
  void bind(int index, int64_t value) { check(sqlite3_bind_int64(statement_, index, value)); }
  void bind(int index, uint64_t value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, uint32_t value) { bind(index, static_cast<int64_t>(value)); }
  void bind(int index, int value) { bind(index, static_cast<int64_t>(value)); }
  // Text and blobs must live until the statement has run.
  void bind(int index, const std::string& value) {
    check(sqlite3_bind_text(statement_, index, value.data(), static_cast<int>(value.size()), SQLITE_STATIC));
  }
  void bind(int index, const Blob& value) {
    check(sqlite3_bind_blob64(statement_, index, value.data, value.bytes, SQLITE_STATIC));
  }
  template <typename Bytes>
  auto bind(int index, const Bytes& value) -> decltype(value.data(), void()) {
    bind(index, Blob{value.data(), value.size()});
  }
  void check(int result) const;

  sqlite3_stmt* statement_ = nullptr;
};

class Database {
 public:
  Database() = default;
  ~Database() { close(); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void open(const std::string& path);
  void close();
  void run(const char* text);
  Statement prepare(const char* text) { return Statement(handle_, text); }
  int64_t last_row() const { return sqlite3_last_insert_rowid(handle_); }
  sqlite3* handle() const { return handle_; }
  bool is_open() const { return handle_ != nullptr; }

 private:
  sqlite3* handle_ = nullptr;
};

}  // namespace phybin::daemon
