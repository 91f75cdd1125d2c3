// A Store on a simulated Disk, its groups run inline: what a test needs to write, wait, crash and open again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "belfry/base/asio.h"
#include "belfry/base/assert.h"
#include "belfry/store/sqlite/sqlite_connection.h"
#include "belfry/store/store.h"
#include "tests/support/power_cut_vfs.h"

namespace belfry::testing {

// Space on a simulated disk that is kept for acks.
class DiskReserve final : public store::Reserve {
 public:
  DiskReserve(Disk& disk, std::size_t bytes) : disk_(disk), bytes_(bytes) {}
  bool hold() override { return held_ = held_ || disk_.set_aside(bytes_); }
  void release() override {
    disk_.give_back();
    held_ = false;
  }

 private:
  Disk& disk_;
  std::size_t bytes_;
  bool held_ = false;
};

class SimulatedStore {
 public:
  struct Options {
    store::sqlite::Synchronous synchronous = store::sqlite::Synchronous::full;
    int cache_kib = 4096;
    bool accept_loss = false;
    store::Options store;
    std::unique_ptr<store::Reserve> reserve;
    const char* tables = "CREATE TABLE IF NOT EXISTS row(id INTEGER PRIMARY KEY, body TEXT NOT NULL)";
  };

  // Throws store::Fault if the disk fails meanwhile.
  explicit SimulatedStore(Disk& disk) : SimulatedStore(disk, Options()) {}
  SimulatedStore(Disk& disk, Options options) {
    store::sqlite::Options file{.path = "belfry.db",
                                .vfs = disk.vfs_name(),
                                .synchronous = options.synchronous,
                                .cache_kib = options.cache_kib,
                                .accept_loss = options.accept_loss};
    auto connection = store::sqlite::open(file);
    connection->execute(options.tables);
    options.store.mode = store::Mode::inline_groups;
    store_.emplace(context_, std::move(connection), std::move(options.store), std::move(options.reserve));
    store_->start();
  }

  store::Store& operator*() { return *store_; }
  store::Store* operator->() { return &*store_; }
  asio::io_context& context() { return context_; }

  // Runs everything that is ready.
  void settle() {
    context_.restart();
    context_.poll();
  }

  // Runs until `task` has its result.
  template <class T>
  T wait(Task<T> task) {
    std::optional<T> result;
    asio::co_spawn(context_, std::move(task), [&result](std::exception_ptr failure, T value) {
      if (failure) std::rethrow_exception(failure);
      result.emplace(std::move(value));
    });
    settle();
    BELFRY_ASSERT(result.has_value());
    return std::move(*result);
  }

 private:
  asio::io_context context_;
  std::optional<store::Store> store_;
};

}  // namespace belfry::testing
