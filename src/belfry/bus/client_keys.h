// Which client keys were used, for idempotent sends (D17): a small log-structured index.
//
// Keys are random, and a B-tree that takes random keys writes a page for each. So a new key is appended to `fresh_key` and
// kept in memory; when there are enough, they are sorted and written as a run, in order, a few thousand rows at a time. A
// lookup asks memory, then each run whose Bloom filter does not rule the key out. Runs are dropped whole when they are old.
//
// Lives on the store's thread. What a group added counts once the group is committed: after_group() says so.
#pragma once

#include <atomic>
#include <optional>
#include <unordered_map>
#include <vector>

#include "belfry/base/digest.h"
#include "belfry/bus/rows.h"
#include "belfry/store/connection.h"

namespace belfry::bus {

// What was sent under a key.
struct UsedKey {
  Digest name;
  std::int64_t body = 0;
  std::int64_t sequence = 0;
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> scheduled_ms;
};

// Says "certainly not" or "perhaps": 16 bits a key, wrong about one in a thousand.
class KeyFilter {
 public:
  explicit KeyFilter(std::size_t keys);
  explicit KeyFilter(std::string_view stored);
  void add(const Digest& name);
  bool may_contain(const Digest& name) const;
  std::string_view bytes() const;

 private:
  std::vector<std::uint64_t> words_;
};

class ClientKeys {
 public:
  static const char* tables();
  void load(store::Connection& connection);

  std::optional<UsedKey> find(store::Connection& connection, const Digest& name, std::int64_t not_before_ms);
  void add(store::Connection& connection, const UsedKey& key);

  // Readable from any thread: there are enough fresh keys for a run.
  bool wants_run() const { return wants_run_.load(std::memory_order_relaxed); }
  // One bounded step of writing a run; true if there are more.
  bool write_run_step(store::Connection& connection);
  // Drops a bounded number of keys that are older; true if there may be more.
  bool drop_old(store::Connection& connection, std::int64_t before_ms, int rows_max);

  void after_group(bool committed);

 private:
  struct Run {
    std::int64_t number = 0;
    std::int64_t newest_ms = 0;
    KeyFilter filter;
  };
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const { return static_cast<std::size_t>(digest.high); }
  };
  using FreshKeys = std::unordered_map<Digest, UsedKey, DigestHash>;

  void freeze();
  bool delete_written(store::Connection& connection);

  FreshKeys fresh_;
  std::vector<Digest> added_in_group_;
  // The run under way: what is being written, sorted, and how much of it is.
  std::vector<UsedKey> frozen_;
  std::size_t written_ = 0;
  std::size_t written_in_group_ = 0;
  std::int64_t written_keys_up_to_ = 0;  // rows of `fresh_key` up to here are in a run and are being deleted
  bool frozen_in_group_ = false;
  bool finished_in_group_ = false;
  bool deleted_in_group_ = false;
  std::int64_t next_run_ = 1;
  std::vector<Run> runs_;
  std::vector<std::pair<Digest, std::int64_t>> dropped_in_group_;  // and which use of the name
  std::optional<std::int64_t> run_dropped_in_group_;
  std::atomic<bool> wants_run_ = false;
};

}  // namespace belfry::bus
