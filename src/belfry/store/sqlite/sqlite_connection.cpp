#include "belfry/store/sqlite/sqlite_connection.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <unordered_map>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/store/fault_words.h"
#include "belfry/store/sqlite/checked_files.h"

namespace belfry::store::sqlite {
namespace {

const Migration kMigrations[] = {
    {1,
     "CREATE TABLE epoch(id INTEGER PRIMARY KEY CHECK(id = 1), data INTEGER NOT NULL, number INTEGER NOT NULL,"
     " nonce INTEGER NOT NULL, base INTEGER NOT NULL, commits INTEGER NOT NULL, sum INTEGER NOT NULL)"},
};

constexpr const char* kNothingIsLost = "nothing is lost: start without --accept-loss";

// Beyond what was noted last: commits that no note has seen may have given out more.
constexpr std::int64_t kGivenOutMargin = 1 << 24;

FaultKind kind_of(int code) {
  if (code == SQLITE_IOERR_DATA) return FaultKind::corrupt;
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

// A page that is being moved may have half of a row: read by itself, it must not be taken for one.
std::int64_t sum_of(const Epoch& epoch) {
  const std::int64_t fields[] = {epoch.data, epoch.number, epoch.nonce, epoch.base, epoch.commits};
  return static_cast<std::int64_t>(checksum_of({reinterpret_cast<const char*>(fields), sizeof fields}, 1));
}

// Throws Fault if there is none that makes sense, though there is the table.
std::optional<Epoch> read_epoch(sqlite3* db) {
  SqliteStatement table(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'epoch'");
  if (!table.step()) return std::nullopt;
  SqliteStatement row(db, "SELECT data, number, nonce, base, commits, sum FROM epoch");
  if (!row.step()) return std::nullopt;  // a first start was cut
  const Epoch epoch{.data = row.integer(0),
                    .number = row.integer(1),
                    .nonce = row.integer(2),
                    .base = row.integer(3),
                    .commits = row.integer(4)};
  if (row.integer(5) != sum_of(epoch)) throw NotAsWritten("the table \"epoch\" holds what Belfry did not write");
  return epoch;
}

// The epoch that the database file has by itself, without its log.
struct EpochInFile {
  bool readable = false;  // not in the middle of being moved there from the log
  std::optional<Epoch> epoch;
};

EpochInFile epoch_in_file(const Options& options) {
  sqlite3* db = nullptr;
  EpochInFile found;
  try {
    const int code = sqlite3_open_v2(immutable_name(options.path).c_str(), &db,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                                     options.vfs.empty() ? nullptr : options.vfs.c_str());
    if (code == SQLITE_OK) found = {.readable = true, .epoch = read_epoch(db)};
  } catch (const Fault&) {
    found = {};
  }
  sqlite3_close(db);
  return found;
}

// A file as a path finds it.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const Identity&) const = default;
};

std::optional<Identity> identity_of(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return Identity{found.st_dev, found.st_ino};
}

class SqliteConnection final : public Connection {
 public:
  explicit SqliteConnection(const Options& options)
      : options_(options),
        files_(options.vfs, options.path),
        database_path_(options.path),
        log_path_(options.path + "-wal") {
    const bool writing = !options.read_only_check;
    const bool has_witness = files_.open_witness(writing ? CheckedFiles::Access::write : CheckedFiles::Access::read);
    const auto witness = files_.read_witness();
    const bool log_is_over = witness && end_moved_log(*witness);
    const bool alone = !writing && (log_is_over || (options.vfs.empty() && !has_log(options.path)));
    if (options.accept_loss && !files_.has_database() && !witness) throw NotOurs(kNothingIsLost);
    const int access = alone                     ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
                       : options.read_only_check ? SQLITE_OPEN_READWRITE
                                                 : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    const std::string name = alone ? immutable_name(options.path) : options.path;
    const int code =
        sqlite3_open_v2(name.c_str(), &db_, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, files_.name());
    try {
      if (code != SQLITE_OK) raise(db_, code, fmt::format("cannot open {}", options.path));
      if (options.read_only_check) {
        configure_for_reading();
      } else {
        configure();
      }
      if (writing && !has_witness && !files_.open_witness(CheckedFiles::Access::make))
        log::warn("store.no_witness", "belfry.db-witness cannot be made: a log that is harmed will not be noticed");
      compare(witness);
      if (!options.read_only_check) begin();
    } catch (...) {
      close(Ending::as_it_was);
      throw;
    }
  }

  ~SqliteConnection() override { close(abandoned_ ? Ending::as_it_was : Ending::clean); }

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
    if (moved == in_log && in_log > 0) note_moved(in_log);
    log_pages_ = 0;
    return in_log;
  }

  int log_pages() const override { return log_pages_; }

  void abandon() override {
    abandoned_ = true;
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }

  std::int64_t page_bytes() const override {
    int now = 0;
    int most = 0;
    sqlite3_db_status(db_, SQLITE_DBSTATUS_CACHE_USED, &now, &most, 0);
    return now;
  }

  void allow_spill(bool allowed) override {
    execute(allowed ? "PRAGMA cache_spill = ON" : "PRAGMA cache_spill = OFF");
    if (!allowed) expect("PRAGMA cache_spill", "0");
  }

  PageReport examine_pages() override { return files_.examine_pages(files_.walk_log(std::nullopt)); }
  std::optional<Loss> loss() const override { return loss_; }

  void prepare_commit() override {
    epoch_changes_ = epoch_is_over_;
    if (epoch_changes_) write_epoch();
  }

  bool in_place() const override {
    if (!options_.vfs.empty()) return true;  // files of a test, without a folder
    return identity_of(database_path_) == database_ && identity_of(log_path_) == log_;
  }

  void note_given_out(std::int64_t id) override { given_out_ = std::max(given_out_, id); }
  std::int64_t given_out() const override { return given_out_; }

  std::string integrity_problem() override {
    std::string problem;
    SqliteStatement check(db_, "PRAGMA integrity_check(10)");
    while (check.step()) {
      if (check.text(0) != "ok") problem += fmt::format("{}{}", problem.empty() ? "" : "; ", check.text(0));
    }
    return problem;
  }

 private:
  enum class Ending { clean, as_it_was };

  void close(Ending ending) {
    if (ending == Ending::as_it_was) {
      abandon();
    } else if (!options_.read_only_check) {
      try {
        checkpoint();
      } catch (const Fault& fault) {
        log::warn("store.checkpoint_failed", "the log could not be moved into the database; the next start reads it",
                  {{"what", fault.what()}});
      }
    }
    statements_.clear();
    sqlite3_close(db_);
  }

  void configure() {
    const Options& options = options_;
    // Exclusive from the first access: a second server fails at once, and no shared-memory file is needed.
    execute("PRAGMA locking_mode = EXCLUSIVE");
    expect("PRAGMA journal_mode = WAL", "wal");
    execute(options.synchronous == Synchronous::full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    expect("PRAGMA synchronous", options.synchronous == Synchronous::full ? "2" : "1");
    execute("PRAGMA wal_autocheckpoint = 0");  // the group commit checkpoints when its callers have been answered
    execute(fmt::format("PRAGMA cache_size = -{}", options.cache_kib));
    allow_spill(false);
    execute("PRAGMA secure_delete = OFF");
    execute("PRAGMA temp_store = MEMORY");
    // Keep the log file at its size: overwriting written blocks syncs faster than growing a file.
    keep_log();
    sqlite3_wal_hook(
        db_,
        [](void* self, sqlite3*, const char*, int pages) {
          static_cast<SqliteConnection*>(self)->committed(pages);
          return SQLITE_OK;
        },
        this);
    // The lock is taken by the first write, not by opening.
    execute("BEGIN IMMEDIATE; COMMIT");
  }

  // Whether what is there is all that was acknowledged, and whether the files belong together.
  void compare(const std::optional<Witness>& witness) {
    const bool writing = !options_.read_only_check;
    epoch_ = read_epoch(db_);
    const EpochInFile in_file = files_.has_log() ? epoch_in_file(options_) : EpochInFile{true, epoch_};
    if (in_file.readable && !fits(in_file.epoch, epoch_))
      throw NotOurs(
          "belfry.db and belfry.db-wal are from different times and cannot be read together. Put back the file that lay "
          "beside either of them, for example both of one backup");
    const LogWalk log = files_.walk_log(witness ? std::optional(witness->last) : std::nullopt);
    log_is_empty_ = log.commits == 0;
    commits_ = (epoch_ ? epoch_->commits : 0) + log.commits;
    if (witness) note_witness(*witness, log.reaches || is_moved_into(*witness, in_file.epoch));
    if (writing && loss_ && !options_.accept_loss) throw LostCommits(*loss_);
    if (writing && !loss_ && options_.accept_loss) throw NotOurs(kNothingIsLost);
    if (writing && loss_) check_what_is_left();

    const bool digests_fit = witness && epoch_ && !loss_ && describes(*witness, *epoch_);
    if (!digests_fit && writing) files_.forget_digests();
    if (!digests_fit && !writing) files_.ignore_digests();
    files_.check_pages(page_size());
    execute("PRAGMA shrink_memory");  // what has been read so far was not checked
  }

  // Each start after a log was moved begins a new life of it, so a life of the log and a state of the database file are one to
  // one. True if the database file alone is all there is. Only where it is the very file that the witness saw.
  bool end_moved_log(const Witness& witness) {
    const auto log = files_.moved_log(witness);
    if (log == CheckedFiles::MovedLog::none) return false;
    if (!is_moved_into(witness, epoch_in_file(options_).epoch)) return false;
    if (options_.read_only_check) return true;
    if (options_.accept_loss) throw NotOurs(kNothingIsLost);
    if (log == CheckedFiles::MovedLog::harmed)
      log::warn("store.log_dropped", "the log was harmed, but all of it is in the database already: it begins anew");
    files_.empty_log();
    return true;
  }

  // A log that ends too early over a database file into which more of it was moved: pages of two times.
  void check_what_is_left() {
    if (const std::string problem = integrity_problem(); !problem.empty())
      throw NotOurs(
          "what is left of the data does not fit together, and cannot be served. Put the files of a backup back");
  }

  void note_witness(const Witness& witness, bool reached) {
    loss_ = missing(witness, {.epoch = epoch_, .commits = commits_, .reaches = reached});
    given_out_ = witness.given_out + (loss_ ? kGivenOutMargin : 0);
    last_epoch_ = witness.epoch;
    base_ = loss_ ? 0 : witness.base;
  }

  std::int64_t page_size() {
    SqliteStatement size(db_, "PRAGMA page_size");
    return size.step() ? size.integer(0) : 0;
  }

  void begin() {
    const bool had_epoch = epoch_.has_value();
    migrate(*this, "store", std::begin(kMigrations), std::end(kMigrations));
    if (!had_epoch) make_epoch();
    // What is left goes into the database file, so that the digests and the next witness begin with it.
    if (loss_) checkpoint();
    // A log without a commit: the next one begins a new life of it.
    if (had_epoch && (log_is_empty_ || loss_)) begin_epoch();
    database_ = identity_of(database_path_);
    log_ = identity_of(log_path_);
  }

  void make_epoch() {
    auto drawn = query("SELECT random(), random()");
    BELFRY_ASSERT(drawn.next());
    const Epoch first{.data = drawn.integer(0), .number = 1, .nonce = drawn.integer(1)};
    run("INSERT INTO epoch VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6)", first.data, first.number, first.nonce, first.base,
        first.commits, sum_of(first));
    epoch_ = first;
  }

  void begin_epoch() {
    epoch_is_over_ = true;
    execute("BEGIN IMMEDIATE");
    prepare_commit();
    execute("COMMIT");
  }

  void write_epoch() {
    auto drawn = query("SELECT random()");
    BELFRY_ASSERT(drawn.next());
    next_epoch_ = {.data = epoch_->data,
                   .number = std::max(epoch_->number, last_epoch_) + 1,
                   .nonce = drawn.integer(0),
                   .base = epoch_->nonce,
                   .commits = commits_};
    run("UPDATE epoch SET number = ?1, nonce = ?2, base = ?3, commits = ?4, sum = ?5", next_epoch_.number,
        next_epoch_.nonce, next_epoch_.base, next_epoch_.commits, sum_of(next_epoch_));
  }

  // A commit is durable, and nobody has been told yet.
  void committed(int pages) {
    log_pages_ = pages;
    ++commits_;
    if (std::exchange(epoch_changes_, false)) {
      epoch_ = next_epoch_;
      epoch_is_over_ = false;
    }
    if (!epoch_ || options_.synchronous != Synchronous::full) return;
    if (const auto place = files_.place_in_log(pages)) write_witness(*place, false);
  }

  // The database file has everything. That is noted for good before the log begins anew over what it has now.
  void note_moved(int pages) {
    if (!epoch_) return;
    epoch_is_over_ = true;
    base_ = epoch_->nonce;
    if (options_.synchronous != Synchronous::full) return;
    write_witness(files_.place_in_log(pages).value_or(LogPlace{}), true);
    files_.sync_witness();
  }

  void write_witness(const LogPlace& last, bool moved) {
    files_.write_witness({.data = epoch_->data,
                          .epoch = epoch_->number,
                          .base = base_,
                          .commits = commits_,
                          .given_out = given_out_,
                          .at_ms = options_.now_ms ? options_.now_ms() : 0,
                          .last = last,
                          .moved = moved});
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

  Options options_;
  CheckedFiles files_;
  std::string database_path_;
  std::string log_path_;
  std::optional<Identity> database_;
  std::optional<Identity> log_;
  sqlite3* db_ = nullptr;
  std::unordered_map<const char*, std::unique_ptr<SqliteStatement>> statements_;
  int log_pages_ = 0;
  bool abandoned_ = false;

  std::optional<Loss> loss_;
  std::optional<Epoch> epoch_;
  Epoch next_epoch_;
  bool epoch_is_over_ = false;   // the next commit begins another
  bool epoch_changes_ = false;   // with the commit that is being made
  std::int64_t last_epoch_ = 0;  // that the witness has seen
  std::int64_t base_ = 0;        // the epoch's nonce in the database file
  std::int64_t commits_ = 0;
  std::int64_t given_out_ = 0;
  bool log_is_empty_ = false;
};

}  // namespace

std::unique_ptr<Connection> open(const Options& options) { return std::make_unique<SqliteConnection>(options); }

}  // namespace belfry::store::sqlite
