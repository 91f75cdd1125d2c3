#include "belfry/bus/client_keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "belfry/base/limits.h"

namespace belfry::bus {
namespace {

using store::Connection;

// A run: large enough that there are few, small enough that the fresh ones fit in some megabytes of memory.
constexpr std::size_t kRunKeys = 65'536;
constexpr std::size_t kFilterBitsPerKey = 16;
constexpr int kFilterProbes = 6;

UsedKey read_key(const store::Rows& rows) {
  return {.name = {rows.integer(0), rows.integer(1)},
          .body = rows.integer(2),
          .sequence = rows.integer(3),
          .created_ms = rows.integer(4),
          .scheduled_ms = rows.maybe_integer(5)};
}

}  // namespace

KeyFilter::KeyFilter(std::size_t keys) : words_(std::max<std::size_t>(keys * kFilterBitsPerKey / 64, 1)) {}

KeyFilter::KeyFilter(std::string_view stored)
    : words_(std::max<std::size_t>(stored.size() / sizeof(std::uint64_t), 1)) {
  std::memcpy(words_.data(), stored.data(), stored.size() / sizeof(std::uint64_t) * sizeof(std::uint64_t));
}

// The name is a digest already: two of its halves make as many independent probes as are wanted.
void KeyFilter::add(const Digest& name) {
  for (int i = 0; i < kFilterProbes; ++i) {
    const auto bit = (static_cast<std::uint64_t>(name.low) +
                      static_cast<std::uint64_t>(i) * (static_cast<std::uint64_t>(name.high) | 1)) %
                     (words_.size() * 64);
    words_[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
}

bool KeyFilter::may_contain(const Digest& name) const {
  for (int i = 0; i < kFilterProbes; ++i) {
    const auto bit = (static_cast<std::uint64_t>(name.low) +
                      static_cast<std::uint64_t>(i) * (static_cast<std::uint64_t>(name.high) | 1)) %
                     (words_.size() * 64);
    if ((words_[bit / 64] >> (bit % 64) & 1) == 0) return false;
  }
  return true;
}

std::string_view KeyFilter::bytes() const {
  return {reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(std::uint64_t)};
}

const char* ClientKeys::tables() {
  return R"sql(
      CREATE TABLE fresh_key(
        sequence INTEGER PRIMARY KEY, high INTEGER NOT NULL, low INTEGER NOT NULL, body INTEGER NOT NULL,
        created_ms INTEGER NOT NULL, scheduled_ms INTEGER);
      CREATE TABLE key_run(
        run INTEGER NOT NULL, high INTEGER NOT NULL, low INTEGER NOT NULL, body INTEGER NOT NULL,
        sequence INTEGER NOT NULL, created_ms INTEGER NOT NULL, scheduled_ms INTEGER,
        PRIMARY KEY(run, high, low)) WITHOUT ROWID;
      CREATE TABLE key_run_filter(run INTEGER PRIMARY KEY, newest_ms INTEGER NOT NULL, filter BLOB NOT NULL);
    )sql";
}

void ClientKeys::load(Connection& connection) {
  {
    auto rows = connection.query("SELECT run, newest_ms, filter FROM key_run_filter ORDER BY run");
    while (rows.next()) {
      runs_.push_back({rows.integer(0), rows.integer(1), KeyFilter(rows.text(2))});
      next_run_ = rows.integer(0) + 1;
    }
  }
  // A run without its filter was being written when the process ended; its keys are still among the fresh ones.
  connection.run("DELETE FROM key_run WHERE run >= ?1", next_run_);
  // In order: of a name that was used again after its time was over, the later use counts.
  auto rows =
      connection.query("SELECT high, low, body, sequence, created_ms, scheduled_ms FROM fresh_key ORDER BY sequence");
  while (rows.next()) {
    const UsedKey key = read_key(rows);
    fresh_.insert_or_assign(key.name, key);
  }
  wants_run_ = fresh_.size() >= kRunKeys;
}

std::optional<UsedKey> ClientKeys::find(Connection& connection, const Digest& name, std::int64_t not_before_ms) {
  const auto recent = [&](const UsedKey& key) {
    return key.created_ms >= not_before_ms ? std::optional(key) : std::nullopt;
  };
  if (const auto found = fresh_.find(name); found != fresh_.end()) return recent(found->second);
  const auto frozen = std::lower_bound(frozen_.begin(), frozen_.end(), name,
                                       [](const UsedKey& key, const Digest& wanted) { return key.name < wanted; });
  if (frozen != frozen_.end() && frozen->name == name) return recent(*frozen);
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (run->newest_ms < not_before_ms || !run->filter.may_contain(name)) continue;
    auto rows = connection.query(
        "SELECT high, low, body, sequence, created_ms, scheduled_ms FROM key_run WHERE run = ?1 AND high = ?2 AND low = ?3",
        run->number, name.high, name.low);
    if (rows.next()) {
      const UsedKey key = read_key(rows);
      // A name whose time is over may stand in an older run and again in a newer one.
      if (const auto found = recent(key)) return found;
    }
  }
  return std::nullopt;
}

void ClientKeys::add(Connection& connection, const UsedKey& key) {
  connection.run("INSERT INTO fresh_key(sequence, high, low, body, created_ms, scheduled_ms) VALUES(?1,?2,?3,?4,?5,?6)",
                 key.sequence, key.name.high, key.name.low, key.body, key.created_ms, key.scheduled_ms);
  fresh_[key.name] = key;
  added_in_group_.push_back(key.name);
}

// Takes the fresh keys aside to be written as a run; those that come meanwhile belong to the next one.
void ClientKeys::freeze() {
  frozen_.reserve(fresh_.size());
  for (const auto& [name, key] : fresh_) frozen_.push_back(key);
  std::sort(frozen_.begin(), frozen_.end(), [](const UsedKey& a, const UsedKey& b) { return a.name < b.name; });
  fresh_.clear();
  written_ = 0;
}

bool ClientKeys::write_run_step(Connection& connection) {
  if (written_keys_up_to_ > 0) return delete_written(connection);
  if (frozen_.empty()) {
    if (fresh_.size() < kRunKeys) return false;
    freeze();
    frozen_in_group_ = true;
  }
  const std::size_t until = std::min(written_ + kChunkRows, frozen_.size());
  for (std::size_t i = written_; i < until; ++i) {
    const UsedKey& key = frozen_[i];
    connection.run(
        "INSERT OR REPLACE INTO key_run(run, high, low, body, sequence, created_ms, scheduled_ms)"
        " VALUES(?1,?2,?3,?4,?5,?6,?7)",
        next_run_, key.name.high, key.name.low, key.body, key.sequence, key.created_ms, key.scheduled_ms);
  }
  written_in_group_ = until - written_;
  if (until < frozen_.size()) return true;

  Run run{.number = next_run_, .filter = KeyFilter(frozen_.size())};
  for (const UsedKey& key : frozen_) {
    run.filter.add(key.name);
    run.newest_ms = std::max(run.newest_ms, key.created_ms);
  }
  connection.run("INSERT INTO key_run_filter(run, newest_ms, filter) VALUES(?1, ?2, ?3)", run.number, run.newest_ms,
                 run.filter.bytes());
  runs_.push_back(std::move(run));
  finished_in_group_ = true;
  return true;
}

// The rows of a written run lie at the front of the fresh ones: deleted in that order, neighbours share pages.
bool ClientKeys::delete_written(Connection& connection) {
  const auto deleted = connection.run(
      "DELETE FROM fresh_key WHERE sequence IN (SELECT sequence FROM fresh_key WHERE sequence <= ?1 ORDER BY sequence LIMIT ?2)",
      written_keys_up_to_, kChunkRows);
  deleted_in_group_ = deleted < kChunkRows;
  return !deleted_in_group_;
}

bool ClientKeys::drop_old(Connection& connection, std::int64_t before_ms, int rows_max) {
  // Fresh keys lie in order of sending, so the old ones come first.
  {
    auto rows =
        connection.query("SELECT high, low, created_ms, sequence FROM fresh_key ORDER BY sequence LIMIT ?1", rows_max);
    while (rows.next() && rows.integer(2) < before_ms)
      dropped_in_group_.push_back({{rows.integer(0), rows.integer(1)}, rows.integer(3)});
  }
  connection.run(
      "DELETE FROM fresh_key WHERE sequence IN"
      " (SELECT sequence FROM (SELECT sequence, created_ms FROM fresh_key ORDER BY sequence LIMIT ?1) WHERE created_ms < ?2)",
      rows_max, before_ms);
  if (runs_.empty() || runs_.front().newest_ms >= before_ms)
    return static_cast<int>(dropped_in_group_.size()) == rows_max;
  const std::int64_t number = runs_.front().number;
  const auto dropped = connection.run(
      "DELETE FROM key_run WHERE (run, high, low) IN (SELECT run, high, low FROM key_run WHERE run = ?1 LIMIT ?2)",
      number, rows_max);
  if (dropped < rows_max) {
    connection.run("DELETE FROM key_run_filter WHERE run = ?1", number);
    run_dropped_in_group_ = number;
  }
  return true;
}

void ClientKeys::after_group(bool committed) {
  if (committed) {
    written_ += written_in_group_;
    if (finished_in_group_) {
      for (const UsedKey& key : frozen_) written_keys_up_to_ = std::max(written_keys_up_to_, key.sequence);
      frozen_.clear();
      frozen_.shrink_to_fit();
      ++next_run_;
    }
    if (deleted_in_group_) written_keys_up_to_ = 0;
    for (const auto& [name, sequence] : dropped_in_group_) {
      const auto found = fresh_.find(name);
      if (found != fresh_.end() && found->second.sequence == sequence) fresh_.erase(found);  // else it was used again
    }
    if (run_dropped_in_group_)
      std::erase_if(runs_, [&](const Run& run) { return run.number == *run_dropped_in_group_; });
  } else {
    if (frozen_in_group_) {
      for (const UsedKey& key : std::exchange(frozen_, {})) fresh_.emplace(key.name, key);
    }
    for (const Digest& name : added_in_group_) fresh_.erase(name);
    if (finished_in_group_) runs_.pop_back();
  }
  added_in_group_.clear();
  dropped_in_group_.clear();
  run_dropped_in_group_.reset();
  written_in_group_ = 0;
  finished_in_group_ = frozen_in_group_ = deleted_in_group_ = false;
  wants_run_ = fresh_.size() >= kRunKeys || !frozen_.empty() || written_keys_up_to_ > 0;
}

}  // namespace belfry::bus
