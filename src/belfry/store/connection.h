// One database connection, without saying whose: the SQL stands beside its feature, the driver below this interface.
//
// Lives on the store's thread. What goes wrong here is a fault, not an outcome, so it is thrown (store::Fault) and caught
// in one place, the group commit, which knows what it means for whom.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "belfry/store/file_report.h"

namespace belfry::store {

enum class FaultKind {
  full,     // no space left: nothing was written
  in_use,   // another process owns the data
  io,       // the disk said no: what was being committed is unknown
  corrupt,  // the file is not what we wrote
  lost,     // it is, but less than what was acknowledged
  other,    // a mistake of ours
};

class Fault : public std::exception {
 public:
  Fault(FaultKind kind, std::string what) : kind_(kind), what_(std::move(what)) {}
  FaultKind kind() const { return kind_; }
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  FaultKind kind_;
  std::string what_;
};

// Acknowledged commits are missing (G22). what() is for people already.
class LostCommits final : public Fault {
 public:
  explicit LostCommits(const Loss& loss);
  const Loss& loss() const { return loss_; }

 private:
  Loss loss_;
};

// A prepared statement, positions counted from 1 for parameters and from 0 for columns.
class Statement {
 public:
  virtual ~Statement() = default;
  virtual void bind_integer(int at, std::int64_t value) = 0;
  virtual void bind_text(int at, std::string_view value) = 0;
  virtual void bind_null(int at) = 0;
  virtual bool step() = 0;  // true: there is a row
  virtual void reset() = 0;
  virtual std::int64_t integer(int column) const = 0;
  virtual std::string_view text(int column) const = 0;  // until the next step
  virtual bool is_null(int column) const = 0;

  void bind(int at, std::int64_t value) { bind_integer(at, value); }
  void bind(int at, int value) { bind_integer(at, value); }
  void bind(int at, bool value) { bind_integer(at, value ? 1 : 0); }
  void bind(int at, std::string_view value) { bind_text(at, value); }
  void bind(int at, const std::string& value) { bind_text(at, value); }
  void bind(int at, const char* value) { bind_text(at, value); }
  void bind(int at, std::optional<std::int64_t> value) {
    if (value) {
      bind_integer(at, *value);
    } else {
      bind_null(at);
    }
  }
};

// The rows of a running query; the statement is free again when this goes out of scope.
class Rows {
 public:
  explicit Rows(Statement& statement) : statement_(statement) {}
  ~Rows() { statement_.reset(); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  bool next() { return statement_.step(); }
  std::int64_t integer(int column) const { return statement_.integer(column); }
  std::string_view text(int column) const { return statement_.text(column); }
  bool is_null(int column) const { return statement_.is_null(column); }
  std::optional<std::int64_t> maybe_integer(int column) const {
    return is_null(column) ? std::nullopt : std::optional(integer(column));
  }

 private:
  Statement& statement_;
};

class Connection {
 public:
  virtual ~Connection() = default;
  // `sql` must outlive the connection (a literal): statements are kept by its address.
  virtual Statement& prepared(const char* sql) = 0;
  virtual std::int64_t changes() const = 0;          // rows changed by the last statement
  virtual void execute(const std::string& sql) = 0;  // several statements, no results
  // Moves what the log holds into the database file; returns the pages that were in the log.
  virtual int checkpoint() = 0;
  virtual int log_pages() const = 0;
  // A commit failed: closing must not touch the files any more, the next start recovers them.
  virtual void abandon() = 0;
  // Memory that pages take, changed ones among them. Beyond the cache's size there are changed ones only.
  virtual std::int64_t page_bytes() const = 0;
  // Whether changed pages may go to the log before their transaction is committed. They must not where savepoints are
  // rolled back (docs/adr/0018); what rewrites whole tables needs it.
  virtual void allow_spill(bool allowed) = 0;
  // The database's own check of its file: empty if all is well.
  virtual std::string integrity_problem() = 0;
  virtual PageReport examine_pages() = 0;
  // For looking at data only: what is missing of what was acknowledged. Who opens it to write gets LostCommits instead.
  virtual std::optional<Loss> loss() const = 0;

  // To be called before each COMMIT that is acknowledged to anybody.
  virtual void prepare_commit() = 0;
  // The files are still where they were opened. If not, what is written into them is nowhere for whoever starts next.
  virtual bool in_place() const = 0;
  // The highest id that anybody may have been given: noted with each commit, for the case that commits are lost.
  virtual void note_given_out(std::int64_t id) = 0;
  // What was noted; where commits were lost, some more than that.
  virtual std::int64_t given_out() const = 0;

  // Runs one statement and returns the number of rows it changed.
  template <class... Values>
  std::int64_t run(const char* sql, const Values&... values) {
    Statement& statement = bound(sql, values...);
    const Rows rows(statement);
    statement.step();
    return changes();
  }

  template <class... Values>
  Rows query(const char* sql, const Values&... values) {
    return Rows(bound(sql, values...));
  }

 private:
  template <class... Values>
  Statement& bound(const char* sql, const Values&... values) {
    Statement& statement = prepared(sql);
    int at = 0;
    (statement.bind(++at, values), ...);
    return statement;
  }
};

// One step in the history of the tables. Steps only add; a released one never changes.
struct Migration {
  int version;
  const char* sql;
};

// The version that a part's tables have; 0 if there are none. So it is in older data, and where the first start was cut.
int version_of(Connection& connection, const std::string& part);

// Brings a database to the newest version in one transaction. Refuses one that a newer program wrote.
void migrate(Connection& connection, const std::string& part, const Migration* first, const Migration* last);

}  // namespace belfry::store
