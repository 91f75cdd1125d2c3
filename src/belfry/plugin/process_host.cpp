#include "belfry/plugin/process_host.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "belfry/base/log.h"
#include "belfry/base/task_group.h"
#include "belfry/plugin/dialogue.h"
#include "belfry/plugin/orphans.h"
#include "belfry/plugin/process.h"
#include "belfry/plugin/refusal.h"

namespace belfry::plugin {
namespace {

constexpr std::size_t kLastWords = 500;
constexpr std::string_view kPath = "/usr/local/bin:/usr/bin:/bin";

// A guard does what it is told within milliseconds of the grace. One that does not is stopped, or the system does not get
// to it: it is killed after this, and after as much again it is not waited for any more.
constexpr Millis kPatience{1'000};
// Of a stop, from its deadline on: together less than a second.
constexpr Millis kDestroyAfter{500};
constexpr Millis kAbandonAfter{800};
// From a request that was not taken to the end of a process that goes on without its input.
constexpr Millis kExitAfterInput{100};
constexpr Millis kLookAgain{10};  // for orphans that still have to end

// A name given twice is the later one's: the plugin's own .env comes last.
class Environment {
 public:
  void set(const std::string& name, std::string_view value) { values_[name] = value; }
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : values_) out.push_back(fmt::format("{}={}", name, value));
    return out;
  }

 private:
  std::map<std::string, std::string> values_;
};

// `home` is where it may write what nobody wants to keep; empty: it has no such place.
std::vector<std::string> environment_of(const Plugin& plugin, const std::string& output_dir, const std::string& home,
                                        const std::string& timezone, bool walled) {
  Environment environment;
  environment.set("PATH", kPath);
  environment.set("HOME", home.empty() ? plugin.folder.string() : home);
  environment.set("LANG", "C.UTF-8");
  if (walled && !home.empty()) environment.set("TMPDIR", home);
  if (!timezone.empty()) environment.set("TZ", timezone);
  if (!output_dir.empty()) environment.set("BELFRY_OUTPUT_DIR", output_dir);
  for (const auto& [name, value] : plugin.environment) environment.set(name, value);
  return environment.lines();
}

std::string with_last_words(std::string sentence, const Process& process) {
  const std::string words = last_words(process.errors(), kLastWords);
  return words.empty() ? sentence : fmt::format("{}; at last it wrote: {}", sentence, words);
}

std::string ending_of(const Process& process) {
  const auto& status = process.status();
  if (!status) return "was ended together with its guard";
  if (status->kind == GuardStatus::Kind::signalled) {
    const char* const name = ::sigabbrev_np(status->number);
    return fmt::format("was ended by signal {} ({})", status->number, name ? name : "?");
  }
  return fmt::format("ended with exit code {}", status->number);
}

Outcome not_started(const Plugin& plugin, std::string_view why) {
  return failure("not_started", fmt::format("{} cannot be run: {}", plugin.command.front(), why));
}

Outcome too_much(Excess what, const Amounts& most) {
  switch (what) {
    case Excess::processes:
      return failure("too_many_processes",
                     fmt::format("it had more than {} processes and threads and was ended", most.processes));
    case Excess::memory:
      return failure("too_much_memory",
                     fmt::format("its processes took more than {} MiB of memory and were ended", most.memory_mib));
    case Excess::entries:
      return failure("too_much_output", fmt::format("it left more than {} files and folders", most.entries));
    case Excess::levels:
      return failure("too_much_output", fmt::format("it left folders deeper than {} levels", most.levels));
    case Excess::none:
    case Excess::bytes: break;
  }
  return failure("too_much_output", fmt::format("it left more than {} MiB", most.output_mib));
}

Outcome lacks_walls(const Process& process, bool strict) {
  return failure("not_started", fmt::format("this system lacks walls that {} for: {}",
                                            strict ? "sandbox = \"strict\" asks" : "its config.json asks",
                                            names_of_walls(process.walls_lacking())));
}

// The folder of a process that stays. Behind walls it cannot be given another one later, so it writes what belongs to a
// step below this, and that is moved from here.
class OwnFolder {
 public:
  using Discard = std::function<void(const std::string& name)>;

  OwnFolder(const HostOptions& options, std::uint64_t number, std::weak_ptr<Discard> discard)
      : name_(fmt::format("{}{}", options.work_prefix, number)),
        path_(options.work / name_),
        discard_(std::move(discard)) {
    std::error_code ec;
    std::filesystem::create_directories(path_, ec);
    if (ec) path_.clear();
  }
  ~OwnFolder() {
    if (const auto discard = discard_.lock(); discard && *discard) (*discard)(name_);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::string name_;
  std::filesystem::path path_;
  std::weak_ptr<Discard> discard_;
};

std::string with_output_dir(const std::string& context, const std::string& output_dir) {
  const auto object = json::parse(context);
  if (!object || object->kind != json::Kind::object) return context;
  json::Writer writer;
  writer.object();
  for (const json::Member& member : json::every_member(*object)) {
    writer.key(member.key);
    if (member.key == "outputDir") {
      writer.value(output_dir);
    } else {
      writer.raw(member.value.raw);
    }
  }
  return writer.end().take();
}

// A step's folder within that, while it is at work.
class StepFolder {
 public:
  StepFolder(std::shared_ptr<OwnFolder> own, std::uint64_t number, Job& job) : own_(std::move(own)) {
    if (!own_ || own_->path().empty() || job.output_dir.empty()) return;
    const std::filesystem::path path = own_->path() / fmt::format("step-{}", number);
    if (::mkdir(path.c_str(), 0700) != 0) return;
    from_ = path;
    to_ = std::exchange(job.output_dir, path.string());
    job.context = with_output_dir(job.context, job.output_dir);
  }
  // The plugin cannot put anything else in the place of its own folder; a link in that of the step's is moved as a link,
  // which does not replace a folder.
  ~StepFolder() {
    if (!from_.empty()) std::rename(from_.c_str(), to_.c_str());
  }
  StepFolder(const StepFolder&) = delete;
  StepFolder& operator=(const StepFolder&) = delete;

 private:
  std::shared_ptr<OwnFolder> own_;
  std::filesystem::path from_;
  std::string to_;
};

// While it lives, a cancel is heard.
class Listening {
 public:
  Listening(std::shared_ptr<Cancel> cancel, std::function<void()> then) : cancel_(std::move(cancel)) {
    if (cancel_) cancel_->on_cancel(std::move(then));
  }
  ~Listening() {
    if (cancel_) cancel_->on_cancel(nullptr);
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  bool cancelled() const { return cancel_ && cancel_->cancelled(); }

 private:
  std::shared_ptr<Cancel> cancel_;
};

// A process with what it has said so far.
struct Work {
  Work(asio::io_context& context, const HostOptions& options)
      : process(std::make_shared<Process>(context)), lines(options.line_max, options.output_max) {}

  void take(std::string_view bytes) {
    lines.feed(bytes, [this](std::string_view line) { take_line(line); });
    news();
  }
  void take_line(std::string_view line) {
    if (dialogue && !ending) dialogue->take(line);
  }
  void news() {
    if (job_wake) job_wake->ring();
    keeper_wake.ring();
    end_wake.ring();
  }
  bool gone() const { return process->gone() && !sweeping; }
  bool has_result() const { return dialogue && dialogue->result() && !dialogue->problem(); }

  std::shared_ptr<Process> process;
  std::shared_ptr<OwnFolder> own;  // of one that stays
  Lines lines;
  std::optional<Dialogue> dialogue;  // of the request under way
  Wake* job_wake = nullptr;          // of the job under way
  Wake keeper_wake;                  // of whoever ends it when it has been idle
  Wake end_wake;                     // of whoever sees to it that it ends
  Wake sweep_wake;                   // of whoever ends what its guard has left
  bool sweeping = false;             // that goes on
  bool ending = false;               // we have told it to end
  bool forced = false;               // … while it still ran: its exit code says nothing about it
};
using Shared = std::shared_ptr<Work>;

// The job hears of news while this lives.
class Attached {
 public:
  Attached(Shared work, Wake& wake) : work_(std::move(work)) { work_->job_wake = &wake; }
  ~Attached() {
    work_->job_wake = nullptr;
    work_->dialogue.reset();
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  Shared work_;
};

// The one process of a persistent plugin, and who waits for it.
struct Lane {
  std::shared_ptr<const Plugin> plugin;  // as the process was started with
  Shared work;
  std::deque<Wake*> waiting;  // the first one has its turn
  BootTime idle_since;
  std::uint64_t requests = 0;
  bool outdated = false;
};

// A place in the lane, given back at the end.
class Turn {
 public:
  Turn(Lane& lane, Wake& wake) : lane_(lane), wake_(wake) { lane_.waiting.push_back(&wake); }
  ~Turn() {
    std::erase(lane_.waiting, &wake_);
    if (!lane_.waiting.empty()) lane_.waiting.front()->ring();
    if (lane_.work) lane_.work->keeper_wake.ring();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool has_come() const { return lane_.waiting.front() == &wake_; }

 private:
  Lane& lane_;
  Wake& wake_;
};

}  // namespace

class ProcessHost::Impl {
 public:
  Impl(asio::io_context& context, Clock& clock, HostOptions options)
      : context_(context), clock_(clock), options_(std::move(options)), tasks_(context) {
    std::signal(SIGPIPE, SIG_IGN);
    if (options_.adopt_orphans) orphans_.emplace();
  }

  Task<Outcome> run_once(Job job, Progress progress, std::shared_ptr<Cancel> cancel);
  Task<Outcome> run_persistent(Job job, Progress progress, std::shared_ptr<Cancel> cancel);
  void renew(const std::vector<std::shared_ptr<const Plugin>>& plugins);
  Task<void> stop(BootTime deadline);
  int running() const { return static_cast<int>(works_.size()); }

 private:
  using Why = std::optional<Outcome>;

  Result<Shared> start(const Plugin& plugin, const std::string& output_dir);
  Sandbox sandbox_of(const Plugin& plugin) const;
  GuardOrder order_for(const Plugin& plugin, const std::string& output_dir, const std::string& home) const;
  void tell_lacks(const Process& process);
  Outcome with_walls(Outcome outcome, const Work& work, const Plugin& plugin) const;
  void changed(const Shared& work);
  void let_go(const Shared& work);
  void end(const Shared& work);
  Task<void> see_to_its_end(Shared work);
  Task<void> wait_for_process(Shared work, BootTime until);
  Task<void> sweep(Shared work);
  std::set<pid_t> guards() const;
  // Why the job cannot go on, whatever its kind.
  Why obstacle(const Work& work, bool cancelled, BootTime deadline, Millis timeout) const;
  Outcome verdict(const Work& work, const Plugin& plugin) const;
  Task<Outcome> wait_for_once(Shared work, Job job, std::shared_ptr<Cancel> cancel);
  Task<bool> wait_for_turn(Turn& turn, Wake& wake, const Listening& listening);
  Task<void> replace_if_needed(Lane& lane, std::shared_ptr<const Plugin> plugin, Wake& wake);
  Task<std::optional<Outcome>> ask(Lane& lane, Job job, Wake& wake, const Listening& listening);
  Task<void> wait_until_gone(Shared work, Wake& wake);
  Task<void> keep(Lane& lane, Shared work);
  Task<void> wait_for_all(BootTime until);

  asio::io_context& context_;
  Clock& clock_;
  HostOptions options_;
  std::optional<Orphans> orphans_;
  std::set<Shared> works_;
  std::map<std::string, std::unique_ptr<Lane>, std::less<>> lanes_;  // as many as there are persistent plugins
  std::set<unsigned> lacks_told_;
  std::uint64_t own_folders_ = 0;
  std::shared_ptr<OwnFolder::Discard> discard_ = std::make_shared<OwnFolder::Discard>(options_.discard);
  Wake stopped_;
  bool stopping_ = false;
  bool sweeping_no_more_ = false;
  TaskGroup tasks_;
};

Sandbox ProcessHost::Impl::sandbox_of(const Plugin& plugin) const {
  const auto own = options_.sandboxes.find(plugin.name);
  return own == options_.sandboxes.end() ? options_.sandbox : own->second;
}

GuardOrder ProcessHost::Impl::order_for(const Plugin& plugin, const std::string& output_dir,
                                        const std::string& home) const {
  GuardOrder order{.grace_ms = static_cast<int>(options_.term_grace.count()),
                   .folder = plugin.folder.string(),
                   .command = plugin.command,
                   .environment = {},
                   .sandbox = sandbox_of(plugin)};
  if (order.sandbox == Sandbox::off) {
    order.environment = environment_of(plugin, output_dir, output_dir, options_.timezone, false);
    return order;
  }
  order.environment = environment_of(plugin, output_dir, home, options_.timezone, true);
  order.landlock_abi_max = options_.landlock_abi_max;
  order.no_network = plugin.no_network;
  order.reads = plugin.reads;
  order.reads.push_back(plugin.folder.string());
  order.reads.push_back(plugin.command.front());
  if (!home.empty()) order.writes.push_back(home);
  if (!plugin.writes.empty()) order.writes.push_back((plugin.folder / plugin.writes).string());
  order.output = home;
  order.amounts = options_.amounts;
  return order;
}

// Made if it is missing. Only a folder that really stands in the plugin's own.
Result<> prepare_writes(const Plugin& plugin) {
  if (plugin.writes.empty()) return {};
  std::filesystem::path path = plugin.folder;
  for (const auto& part : std::filesystem::path(plugin.writes)) {
    path /= part;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      return fail(Errc::unavailable, fmt::format("there is no folder {}: {}", path.string(), std::strerror(errno)));
    std::error_code ec;
    if (std::filesystem::symlink_status(path, ec).type() != std::filesystem::file_type::directory)
      return fail(Errc::unavailable,
                  fmt::format("{}, which writes in its config.json names, is no folder", path.string()));
  }
  return {};
}

Result<Shared> ProcessHost::Impl::start(const Plugin& plugin, const std::string& output_dir) {
  BELFRY_CHECK(prepare_writes(plugin));
  auto work = std::make_shared<Work>(context_, options_);
  const bool behind_walls = sandbox_of(plugin) != Sandbox::off;
  if (plugin.persistent && behind_walls && !options_.work.empty())
    work->own = std::make_shared<OwnFolder>(options_, ++own_folders_, discard_);
  const std::string home = work->own ? work->own->path().string() : output_dir;
  const GuardOrder order = order_for(plugin, plugin.persistent ? "" : output_dir, home);
  Process::Listener listener{.output = [work](std::string_view bytes) { work->take(bytes); },
                             .changed = [this, work] { changed(work); }};
  BELFRY_CHECK(work->process->start(options_.guard, plugin.name, order, std::move(listener), tasks_));
  works_.insert(work);
  return work;
}

// Once for each kind of lack: it is the system's, not the plugin's.
void ProcessHost::Impl::tell_lacks(const Process& process) {
  const unsigned lacks = process.walls_lacking();
  if (lacks == 0 || process.needs_walls() || !lacks_told_.insert(lacks).second) return;
  log::warn("plugin.walls_missing", "this system lacks walls around plugins; docs/plugins.md says what holds where",
            {{"walls", names_of_walls(lacks)}});
}

// What a wall refused looks to a plugin like what rights refuse.
Outcome ProcessHost::Impl::with_walls(Outcome outcome, const Work& work, const Plugin& plugin) const {
  if (outcome.success || sandbox_of(plugin) == Sandbox::off) return outcome;
  const std::string hint = refusal_of_walls(outcome.message + "\n" + work.process->errors(), plugin);
  if (!hint.empty()) outcome.message += "; " + hint;
  return outcome;
}

void ProcessHost::Impl::changed(const Shared& work) {
  if (work->process->output_closed()) work->lines.finish([&](std::string_view line) { work->take_line(line); });
  if (work->process->gone()) {
    work->sweeping = orphans_ && !work->process->all_gone();
    if (work->sweeping) {
      tasks_.spawn("orphans of a plugin", sweep(work));
    } else {
      let_go(work);
    }
  }
  tell_lacks(*work->process);
  work->news();
}

void ProcessHost::Impl::let_go(const Shared& work) {
  works_.erase(work);
  if (works_.empty()) stopped_.ring();
}

void ProcessHost::Impl::end(const Shared& work) {
  if (std::exchange(work->ending, true)) return;
  work->forced = !work->process->status();
  work->process->end();
  tasks_.spawn("end of a plugin", see_to_its_end(work));
}

Task<void> ProcessHost::Impl::wait_for_process(Shared work, BootTime until) {
  while (!work->process->gone() && clock_.now().boot < until) co_await clock_.sleep_until(until, work->end_wake);
}

// The guard was told. A plugin can stop it, though, and whoever waits for the plugin must not wait for ever.
Task<void> ProcessHost::Impl::see_to_its_end(Shared work) {
  const BootTime overdue = clock_.now().boot + options_.term_grace + kPatience;
  co_await wait_for_process(work, overdue);
  if (work->process->gone()) co_return;
  log::warn("plugin.guard_stuck", "the guard of a plugin did not end it in time; both are killed",
            {{"guard", work->process->guard()}});
  work->process->destroy();
  co_await wait_for_process(work, overdue + kPatience);
  work->process->abandon();
}

std::set<pid_t> ProcessHost::Impl::guards() const {
  std::set<pid_t> out;
  for (const Shared& work : works_)
    if (!work->process->gone()) out.insert(work->process->guard());
  return out;
}

// Its guard was killed, so what the plugin has forked is now our child. The job ends when all of that has.
Task<void> ProcessHost::Impl::sweep(Shared work) {
  const BootTime until = clock_.now().boot + kPatience;
  while (!orphans_->end_all_but(guards()) && !sweeping_no_more_ && clock_.now().boot < until)
    co_await clock_.sleep_until(clock_.now().boot + kLookAgain, work->sweep_wake);
  work->sweeping = false;
  let_go(work);
  work->news();
}

ProcessHost::Impl::Why ProcessHost::Impl::obstacle(const Work& work, bool cancelled, BootTime deadline,
                                                   Millis timeout) const {
  if (work.process->excess() != Excess::none) return too_much(work.process->excess(), options_.amounts);
  if (work.dialogue->problem()) return work.dialogue->problem();
  if (work.lines.too_much())
    return failure("too_much_output", fmt::format("it wrote more than {} bytes, or a line of more than {}",
                                                  options_.output_max, options_.line_max));
  if (work.process->error_bytes() > options_.errors_max)
    return failure("too_much_output", fmt::format("it wrote more than {} bytes to stderr", options_.errors_max));
  if (work.has_result()) return std::nullopt;  // what it has done is done
  if (stopping_) return failure("cancelled", "the server is stopping");
  if (cancelled) return failure("cancelled", "it was cancelled");
  if (clock_.now().boot >= deadline)
    return failure("timed_out", fmt::format("it took longer than {} ms and was ended", timeout.count()));
  return std::nullopt;
}

// Of a process that is gone and was given no reason to end by us, or only that it did not go by itself.
Outcome ProcessHost::Impl::verdict(const Work& work, const Plugin& plugin) const {
  const Process& process = *work.process;
  if (process.needs_walls()) return lacks_walls(process, sandbox_of(plugin) == Sandbox::strict);
  const auto& status = process.status();
  if (status && status->kind == GuardStatus::Kind::not_started)
    return not_started(plugin, std::strerror(status->number));
  const bool ended_well = status && status->kind == GuardStatus::Kind::exited && status->number == 0;
  if (work.has_result()) {
    const Outcome& result = *work.dialogue->result();
    if (!result.success || ended_well || work.forced) return result;
    return failure("crashed", with_last_words("it said success, but " + ending_of(process), process));
  }
  if (work.forced)
    return failure("bad_output", with_last_words("it closed its output without a result and went on", process));
  return failure("crashed", with_last_words(fmt::format("it {} without a result", ending_of(process)), process));
}

Task<void> ProcessHost::Impl::wait_until_gone(Shared work, Wake& wake) {
  while (!work->gone()) co_await clock_.sleep_until(BootTime::max(), wake);  // see_to_its_end has an end
}

// ---- one process for one job

Task<Outcome> ProcessHost::Impl::run_once(Job job, Progress progress, std::shared_ptr<Cancel> cancel) {
  if (stopping_) co_return failure("cancelled", "the server is stopping");
  if (cancel && cancel->cancelled()) co_return failure("cancelled", "it was cancelled");
  auto started = start(*job.plugin, job.output_dir);
  if (!started) co_return not_started(*job.plugin, started.error().detail);
  const Shared work = std::move(*started);
  work->dialogue.emplace("", std::move(progress));
  work->process->write(request_line(job, ""), Process::Then::close);
  auto outcome = co_await wait_for_once(work, std::move(job), std::move(cancel));
  co_return outcome;
}

Task<Outcome> ProcessHost::Impl::wait_for_once(Shared work, Job job, std::shared_ptr<Cancel> cancel) {
  Wake wake;
  const Attached attached(work, wake);
  const Listening listening(std::move(cancel), [&wake] { wake.ring(); });
  const BootTime deadline = clock_.now().boot + job.timeout;
  std::optional<BootTime> leave_by;  // it has said all, and may now exit
  Why why;
  while (!work->gone()) {
    if (!why) why = obstacle(*work, listening.cancelled(), deadline, job.timeout);
    const BootTime now = clock_.now().boot;
    if (!leave_by && (work->has_result() || work->process->output_closed())) leave_by = now + options_.term_grace;
    const bool hurried = work->has_result() && (stopping_ || listening.cancelled());
    if (why || hurried || (leave_by && now >= *leave_by)) end(work);
    const BootTime due = work->ending ? BootTime::max() : std::min(deadline, leave_by.value_or(BootTime::max()));
    const bool past = work->has_result() && due <= now;  // the deadline no longer counts
    co_await clock_.sleep_until(past ? *leave_by : due, wake);
  }
  // What was wrong may have come with its last bytes.
  if (!why && work->process->excess() != Excess::none) why = too_much(work->process->excess(), options_.amounts);
  if (!why && work->dialogue->problem()) why = work->dialogue->problem();
  if (!why && work->lines.too_much()) why = obstacle(*work, false, BootTime::max(), job.timeout);
  if (why && why->code == "bad_output") why->message = with_last_words(why->message, *work->process);
  co_return with_walls(why ? *why : verdict(*work, *job.plugin), *work, *job.plugin);
}

// ---- one process for many jobs

Task<Outcome> ProcessHost::Impl::run_persistent(Job job, Progress progress, std::shared_ptr<Cancel> cancel) {
  auto& place = lanes_[job.plugin->name];
  if (!place) place = std::make_unique<Lane>();
  Lane& lane = *place;
  Wake wake;
  Turn turn(lane, wake);
  const Listening listening(std::move(cancel), [&wake] { wake.ring(); });
  const bool come = co_await wait_for_turn(turn, wake, listening);
  if (!come) co_return failure("cancelled", stopping_ ? "the server is stopping" : "it was cancelled");
  // One that has closed its input has read nothing of the request: a new one is asked, once.
  for (const bool last : {false, true}) {
    co_await replace_if_needed(lane, job.plugin, wake);
    if (stopping_) co_return failure("cancelled", "the server is stopping");
    if (!lane.work) {
      auto started = start(*job.plugin, job.output_dir);
      if (!started) co_return not_started(*job.plugin, started.error().detail);
      lane.work = std::move(*started);
      lane.plugin = job.plugin;
      lane.outdated = false;
      tasks_.spawn("idle plugin", keep(lane, lane.work));
    }
    lane.work->dialogue.emplace(std::to_string(++lane.requests), progress);
    const Shared work = lane.work;
    Job here = job;
    const StepFolder folder(work->own, lane.requests, here);
    auto outcome = co_await ask(lane, here, wake, listening);
    lane.idle_since = clock_.now().boot;
    if (outcome) co_return with_walls(std::move(*outcome), *work, *job.plugin);
    if (last) break;
  }
  co_return failure("bad_output", "it closed its input and did not read the request");
}

Task<bool> ProcessHost::Impl::wait_for_turn(Turn& turn, Wake& wake, const Listening& listening) {
  while (!turn.has_come() && !listening.cancelled() && !stopping_) co_await clock_.sleep_until(BootTime::max(), wake);
  co_return !listening.cancelled() && !stopping_;
}

// One that ended meanwhile, or is of another edition, makes room for a new one.
Task<void> ProcessHost::Impl::replace_if_needed(Lane& lane, std::shared_ptr<const Plugin> plugin, Wake& wake) {
  if (!lane.work) co_return;
  const Shared work = lane.work;
  const bool good = !work->ending && !work->gone() && !work->process->output_closed() &&
                    !work->process->input_refused() && !work->lines.too_much() && !lane.outdated &&
                    *lane.plugin == *plugin;
  if (good) co_return;
  end(work);
  const Attached attached(work, wake);
  co_await wait_until_gone(work, wake);
  lane.work = nullptr;
}

// Nothing: it does not read any more, and was ended.
Task<std::optional<Outcome>> ProcessHost::Impl::ask(Lane& lane, Job job, Wake& wake, const Listening& listening) {
  const Shared work = lane.work;
  const Attached attached(work, wake);
  work->lines.begin_anew();
  work->process->forget_error_bytes();
  work->process->write(request_line(job, std::to_string(lane.requests)), Process::Then::keep);
  const BootTime deadline = clock_.now().boot + job.timeout;
  std::optional<BootTime> leave_by;  // without output it is of no use; it may be about to exit
  bool input_refused = false;
  Why why;
  while (!work->gone()) {
    if (work->has_result()) co_return *work->dialogue->result();
    if (!why) why = obstacle(*work, listening.cancelled(), deadline, job.timeout);
    const BootTime now = clock_.now().boot;
    if (!leave_by && work->process->output_closed()) leave_by = now + options_.term_grace;
    // One that has just crashed reads no more either: a moment, and its end is known.
    if (!input_refused && work->process->input_refused()) {
      input_refused = true;
      leave_by = std::min(leave_by.value_or(BootTime::max()), now + kExitAfterInput);
    }
    if (why || (leave_by && now >= *leave_by)) end(work);
    const BootTime due = std::min(deadline, leave_by.value_or(BootTime::max()));
    co_await clock_.sleep_until(work->ending ? BootTime::max() : due, wake);
  }
  lane.work = nullptr;
  if (!why && work->process->excess() != Excess::none) why = too_much(work->process->excess(), options_.amounts);
  if (!why && work->dialogue->problem()) why = work->dialogue->problem();
  if (why) co_return *why;
  if (work->has_result()) co_return *work->dialogue->result();
  if (work->forced && work->process->input_refused()) co_return std::nullopt;
  co_return verdict(*work, *job.plugin);
}

// Ends it when nobody has asked for long, or it is of no use any more.
Task<void> ProcessHost::Impl::keep(Lane& lane, Shared work) {
  while (!work->gone()) {
    const bool idle = lane.waiting.empty();
    const BootTime due = lane.idle_since + lane.plugin->idle_timeout;
    const bool useless = work->lines.too_much() || work->process->output_closed() || lane.outdated ||
                         work->process->error_bytes() > options_.errors_max;
    if (idle && (useless || clock_.now().boot >= due)) end(work);
    co_await clock_.sleep_until(idle && !work->ending ? due : BootTime::max(), work->keeper_wake);
  }
  if (lane.work == work && lane.waiting.empty()) lane.work = nullptr;
}

void ProcessHost::Impl::renew(const std::vector<std::shared_ptr<const Plugin>>& plugins) {
  for (auto& [name, lane] : lanes_) {
    if (!lane->work) continue;
    const auto same = [&](const auto& plugin) { return *plugin == *lane->plugin; };
    lane->outdated = std::none_of(plugins.begin(), plugins.end(), same);
    lane->work->keeper_wake.ring();
  }
}

// ---- the end

Task<void> ProcessHost::Impl::stop(BootTime deadline) {
  stopping_ = true;
  for (auto& [name, lane] : lanes_)
    for (Wake* const waiting : lane->waiting) waiting->ring();
  for (const Shared& work : works_) {
    if (!work->job_wake) end(work);
    work->news();
  }
  co_await wait_for_all(deadline);
  for (const Shared& work : works_) work->process->kill();
  co_await wait_for_all(deadline + kDestroyAfter);
  for (const Shared& work : works_) work->process->destroy();
  co_await wait_for_all(deadline + kAbandonAfter);
  sweeping_no_more_ = true;
  for (const Shared& work : works_) {
    work->process->abandon();
    work->sweep_wake.ring();
  }
  co_await wait_for_all(BootTime::max());  // only until their tasks have heard of it
  co_await tasks_.join();
  discard_.reset();  // who does that ends before us
}

Task<void> ProcessHost::Impl::wait_for_all(BootTime until) {
  while (!works_.empty() && clock_.now().boot < until) co_await clock_.sleep_until(until, stopped_);
}

ProcessHost::ProcessHost(asio::io_context& context, Clock& clock, HostOptions options)
    : impl_(std::make_unique<Impl>(context, clock, std::move(options))) {}
ProcessHost::~ProcessHost() = default;

Task<Outcome> ProcessHost::perform(Job job, Progress progress, std::shared_ptr<Cancel> cancel) {
  if (job.plugin->persistent) return impl_->run_persistent(std::move(job), std::move(progress), std::move(cancel));
  return impl_->run_once(std::move(job), std::move(progress), std::move(cancel));
}
void ProcessHost::renew(const std::vector<std::shared_ptr<const Plugin>>& plugins) { impl_->renew(plugins); }
Task<void> ProcessHost::stop(BootTime deadline) { return impl_->stop(deadline); }
int ProcessHost::running() const { return impl_->running(); }

}  // namespace belfry::plugin
