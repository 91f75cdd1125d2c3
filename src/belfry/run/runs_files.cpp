// What tools leave behind: it is written to the disk before they are believed, and removed when their run is forgotten.
#include <algorithm>

#include <boost/asio/post.hpp>

#include "belfry/base/log.h"
#include "belfry/run/files.h"
#include "belfry/run/removal.h"
#include "belfry/run/runs.h"

namespace belfry::run {
namespace {

// Folders that are looked up in one read.
constexpr std::size_t kSweptAtOnce = 500;
// Entries that are removed in one go, and the pause behind it: the disk belongs to others, too.
constexpr int kRemovedAtOnce = 128;
constexpr Millis kRemovalPause{2};
// Between two looks whether a tool is still at work in a folder that is to go.
constexpr Millis kFilesWait{100};

std::vector<std::string> names_in(const std::filesystem::path& folder, const std::string& spared) {
  std::vector<std::string> names;
  std::error_code ec;
  for (std::filesystem::directory_iterator entry(folder, ec), end; !ec && entry != end; entry.increment(ec))
    names.push_back(entry->path().filename().string());
  // Neither what was set aside nor what plugins of this life are at work in.
  std::erase_if(names, [&](const std::string& name) {
    return name.starts_with(kSetAside) || (!spared.empty() && name.starts_with(spared));
  });
  return names;
}

void log_end(const std::string& id, Removal::State state, const std::string& why) {
  if (state == Removal::State::set_aside)
    log::warn("run.files_set_aside",
              "not all files of a run could be removed; what is left stands in files under a name with .set-aside- in "
              "front, and is nobody's any more",
              {{"run", id}, {"why", why}});
  if (state == Removal::State::not_now)
    log::warn("run.files_not_removed", "files of a run could not be removed; the next start tries again",
              {{"run", id}, {"why", why}});
}

}  // namespace

// A result that is reported names files that are there, also after a power cut.
Task<Result<>> Runs::sync_files_of(StepKey key, std::string id) {
  co_return co_await side_.run([root = options_.files, id = std::move(id), step = key.step,
                                sync = options_.sync]() -> Result<> { return sync_files(root, id, step, sync); });
}

// One after the other, whoever asks for it. What a stop leaves, the next start sweeps.
void Runs::remove_files(const std::vector<std::string>& ids) {
  if (options_.files.empty() || ids.empty() || stopping_) return;
  to_remove_.insert(to_remove_.end(), ids.begin(), ids.end());
  if (!std::exchange(removing_, true)) tasks_.spawn("files of forgotten runs", remove_waiting());
}

Task<void> Runs::remove_waiting() {
  // A tool that was cancelled has a grace to end in, and may still write.
  const auto at_rest = [this](const std::string& id) {
    return std::ranges::none_of(jobs_, [&id](const auto& one) { return one.second.run.id == id; });
  };
  while (!to_remove_.empty() && !stopping_) {
    const auto next = std::ranges::find_if(to_remove_, at_rest);
    if (next == to_remove_.end()) {
      co_await pauses_.pause(kFilesWait);
      continue;
    }
    const std::string id = std::move(*next);
    to_remove_.erase(next);
    co_await remove_files_of(id);
  }
  removing_ = false;
}

// A few at a time: a stop comes in between, and others who use the disk.
Task<void> Runs::remove_files_of(std::string id) {
  const auto removal = std::make_shared<Removal>(options_.files, id);
  auto state = Removal::State::more;
  while (state == Removal::State::more && !stopping_) {
    state = co_await side_.run([removal] { return removal->go_on(kRemovedAtOnce); });
    if (state == Removal::State::more) co_await pauses_.pause(kRemovalPause);
  }
  log_end(id, state, removal->why());
}

// Folders of runs that were forgotten just before the server died.
Task<void> Runs::sweep_files() {
  if (options_.files.empty()) co_return;
  const auto ids =
      co_await side_.run([folder = options_.files, spared = options_.spared] { return names_in(folder, spared); });
  for (std::size_t at = 0; at < ids.size() && !closed_; at += kSweptAtOnce) {
    std::vector<std::string> some(ids.begin() + static_cast<std::ptrdiff_t>(at),
                                  ids.begin() + static_cast<std::ptrdiff_t>(std::min(at + kSweptAtOnce, ids.size())));
    auto look = [some](store::Connection& connection) mutable -> Result<std::vector<std::string>> {
      std::erase_if(some, [&](const std::string& id) { return RunTables::number_of(connection, id).has_value(); });
      return some;
    };
    const auto unknown = co_await parts_.store.read<std::vector<std::string>>(std::move(look));
    if (!unknown) co_return;  // the next start sweeps again
    if (unknown->empty()) continue;
    log::info("run.files_removed", "files of runs that are forgotten", {{"count", unknown->size()}});
    remove_files(*unknown);
  }
}

}  // namespace belfry::run
