#include "belfry/store/sqlite/sqlite_connection.h"

#include <sqlite3.h>

#include <filesystem>
#include <system_error>
#include <unordered_map>

#include <fmt/format.h>

#include "belfry/base/assert.h"

namespace belfry::store::sqlite {
namespace {

FaultKind kind_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL: return FaultKind::full;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return FaultKind::in_use;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return FaultKind::io;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return FaultKind::corrupt;
    default: return FaultKind::other;
  }
}

[[noreturn]] void raise(sqlite3* db, int code, std::string_view doing) {
  throw Fault(kind_of(code), fmt::format("{}: {}", doing, db ? sqlite3_errmsg(db) : sqlite3_errstr(code)));
}

class SqliteStatement final : public Statement {
 public:
  SqliteStatement(sqlite3* db, const char* sql) : db_(db), sql_(sql) {
    const int code = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
    if (code != SQLITE_OK) raise(db, code, sql);
  }
  ~SqliteStatement() override { sqlite3_finalize(handle_); }

  void bind_integer(int at, std::int64_t value) override { check(sqlite3_bind_int64(handle_, at, value)); }
  void bind_text(int at, std::string_view value) override {
    // Static: every caller steps before the text it bound goes away.
    check(sqlite3_bind_text64(handle_, at, value.data() ? value.data() : "", value.size(), SQLITE_STATIC, SQLITE_UTF8));
  }
  void bind_null(int at) override { check(sqlite3_bind_null(handle_, at)); }

  bool step() override {
    const int code = sqlite3_step(handle_);
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    sqlite3_reset(handle_);
    raise(db_, code, sql_);
  }
  void reset() override { sqlite3_reset(handle_); }

  std::int64_t integer(int column) const override { return sqlite3_column_int64(handle_, column); }
  std::string_view text(int column) const override {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
    return {bytes ? bytes : "", static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
  }
  bool is_null(int column) const override { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

 private:
  void check(int code) {
    if (code != SQLITE_OK) raise(db_, code, sql_);
  }

  sqlite3* db_;
  const char* sql_;
  sqlite3_stmt* handle_ = nullptr;
};

// With a log beside it, a file is not all there is, and nobody but SQLite knows what is.
bool has_log(const std::string& path) {
  const auto holds_something = [&path](const char* ending) {
    std::error_code none;
    const auto size = std::filesystem::file_size(path + ending, none);
    return !none && size > 0;
  };
  return holds_something("-wal") || holds_something("-journal");
}

// The name of a file that nobody changes, as SQLite wants it.
std::string immutable_name(const std::string& path) {
  std::string name = path.starts_with('/') ? "file://" : "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      name += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      name += c;
    }
  }
  return name + "?immutable=1";
}

class SqliteConnection final : public Connection {
 public:
  explicit SqliteConnection(const Options& options) {
    const bool alone = options.read_only_check && options.vfs.empty() && !has_log(options.path);
    const int access = alone                     ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
                       : options.read_only_check ? SQLITE_OPEN_READWRITE
                                                 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    const std::string name = alone ? immutable_name(options.path) : options.path;
    const int code = sqlite3_open_v2(name.c_str(), &db_, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                                     options.vfs.empty() ? nullptr : options.vfs.c_str());
    try {
      if (code != SQLITE_OK) raise(db_, code, fmt::format("cannot open {}", options.path));
      if (options.read_only_check) {
        configure_for_reading();
      } else {
        configure(options);
      }
    } catch (...) {
      sqlite3_close(db_);
      throw;
    }
  }

  ~SqliteConnection() override {
    statements_.clear();
    sqlite3_close(db_);
  }

  Statement& prepared(const char* sql) override {
    auto& slot = statements_[sql];
    if (!slot) slot = std::make_unique<SqliteStatement>(db_, sql);
    return *slot;
  }

  std::int64_t changes() const override { return sqlite3_changes64(db_); }

  void execute(const std::string& sql) override {
    const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) raise(db_, code, sql.substr(0, 60));
  }

  int checkpoint() override {
    int in_log = 0;
    int moved = 0;
    const int code = sqlite3_wal_checkpoint_v2(db_, nullptr, SQLITE_CHECKPOINT_PASSIVE, &in_log, &moved);
    if (code != SQLITE_OK) raise(db_, code, "checkpoint");
    log_pages_ = 0;
    return in_log;
  }

  int log_pages() const override { return log_pages_; }

  void abandon() override { sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr); }

  std::string integrity_problem() override {
    std::string problem;
    SqliteStatement check(db_, "PRAGMA integrity_check(10)");
    while (check.step()) {
      if (check.text(0) != "ok") problem += fmt::format("{}{}", problem.empty() ? "" : "; ", check.text(0));
    }
    return problem;
  }

 private:
  void configure(const Options& options) {
    // Exclusive from the first access: a second server fails at once, and no shared-memory file is needed.
    execute("PRAGMA locking_mode = EXCLUSIVE");
    expect("PRAGMA journal_mode = WAL", "wal");
    execute(options.synchronous == Synchronous::full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    expect("PRAGMA synchronous", options.synchronous == Synchronous::full ? "2" : "1");
    execute("PRAGMA wal_autocheckpoint = 0");  // the group commit checkpoints when its callers have been answered
    execute(fmt::format("PRAGMA cache_size = -{}", options.cache_kib));
    execute("PRAGMA secure_delete = OFF");
    execute("PRAGMA temp_store = MEMORY");
    // Keep the log file at its size: overwriting written blocks syncs faster than growing a file.
    keep_log();
    sqlite3_wal_hook(
        db_,
        [](void* self, sqlite3*, const char*, int pages) {
          static_cast<SqliteConnection*>(self)->log_pages_ = pages;
          return SQLITE_OK;
        },
        this);
    // The lock is taken by the first write, not by opening.
    execute("BEGIN IMMEDIATE; COMMIT");
  }

  // Not SQLITE_OPEN_READONLY: the lock that keeps a server out needs a file that could be written to.
  void configure_for_reading() {
    execute("PRAGMA locking_mode = EXCLUSIVE");
    execute("PRAGMA query_only = ON");
    keep_log();
    abandon();
    execute("SELECT count(*) FROM sqlite_master");
  }

  void keep_log() {
    int keep = 1;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
  }

  void expect(const char* sql, std::string_view wanted) {
    SqliteStatement statement(db_, sql);
    const bool row = statement.step();
    const std::string got(row ? statement.text(0) : "nothing");
    if (got != wanted) throw Fault(FaultKind::io, fmt::format("{} answered {} instead of {}", sql, got, wanted));
  }

  sqlite3* db_ = nullptr;
  std::unordered_map<const char*, std::unique_ptr<SqliteStatement>> statements_;
  int log_pages_ = 0;
};

}  // namespace

std::unique_ptr<Connection> open(const Options& options) { return std::make_unique<SqliteConnection>(options); }

}  // namespace belfry::store::sqlite
