#include "belfry/app/runtime.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include "belfry/agent/concierge/concierge.h"
#include "belfry/agent/planner/memory.h"
#include "belfry/agent/planner/planner.h"
#include "belfry/agent/planner/planner_json.h"
#include "belfry/agent/processor.h"
#include "belfry/agent/roster.h"
#include "belfry/agent/tools.h"
#include "belfry/app/bundled.h"
#include "belfry/app/examination.h"
#include "belfry/app/timezone.h"
#include "belfry/base/log.h"
#include "belfry/base/random.h"
#include "belfry/bus/message_bus.h"
#include "belfry/chat/chats.h"
#include "belfry/chat/outbox.h"
#include "belfry/chat/private_messages.h"
#include "belfry/chat/webhooks.h"
#include "belfry/clock/real_clock.h"
#include "belfry/due/timekeeper.h"
#include "belfry/net/socket_client.h"
#include "belfry/net/url.h"
#include "belfry/plugin/catalog.h"
#include "belfry/plugin/process_host.h"
#include "belfry/plugin/watcher.h"
#include "belfry/run/runs.h"
#include "belfry/run/tools.h"
#include "belfry/server/http_server.h"
#include "belfry/store/fault_words.h"
#include "belfry/store/file_reserve.h"
#include "belfry/store/folder_lock.h"
#include "belfry/store/sqlite/sqlite_connection.h"
#include "belfry/store/store.h"
#include "belfry/tool/builtin/builtin.h"
#include "belfry/tool/executor.h"
#include "belfry/tool/schema.h"

namespace belfry::app {
namespace {

constexpr int kExitForced = 130;  // as a shell reports Ctrl-C
constexpr int kExitBroken = 4;
// For what tools have left: one that removes it, others that write it to the disk for good.
constexpr int kSideThreads = 4;
// The last part of a stop's deadline, at most: for answers that are being written and for the last write.
constexpr Nanos kCloseGrace = std::chrono::seconds{1};
// A log that nobody reads must not hold up a forced exit.
constexpr unsigned kFlushSecondsMax = 1;
// The agent that is there when there is a model and the settings name none.
constexpr const char* kAssistant = "assistant";
// A turn of an agent that thinks: many answers of a slow model, and tools between them.
constexpr Millis kThinkingMax{3'600'000};
// From the word that a plugin is to end to the moment at which it is made to: a little longer than its own grace.
constexpr Nanos kPluginGrace = std::chrono::milliseconds{2'500};

// What is left is read once more, as the doctor reads it: nothing is changed by it.
std::string what_is_left(const std::string& data) {
  try {
    return since_when(*store::sqlite::open({.path = database_path(data), .read_only_check = true}));
  } catch (const store::Fault&) {
    return "";
  }
}

Error error_of(const store::Fault& fault, const std::string& data) {
  if (fault.kind() == store::FaultKind::in_use)
    return {Errc::data_in_use, fmt::format("another Belfry is using the data in {}", data)};
  if (const auto* lost = dynamic_cast<const store::LostCommits*>(&fault))
    return {Errc::storage_failed,
            fmt::format(
                "the data in {} is not complete: {}{}. Put the files of a backup back (and take belfry.db-witness away "
                "with the others), or start once with --accept-loss to go on with what is left",
                data, lost->what(), what_is_left(data))};
  return {Errc::storage_failed, fmt::format("cannot open the data in {}: {}", data, store::in_plain_words(fault))};
}

// Looked at before it is opened: that alone would change another program's file.
void check_program(const std::string& path) {
  if (!std::filesystem::exists(path)) return;
  const auto connection = store::sqlite::open({.path = path, .read_only_check = true});
  store::check_program(*connection);
}

// Creates the directory for nobody but us, or refuses one that cannot be used.
Result<> prepare_data_directory(const std::string& path) {
  std::error_code ec;
  const std::filesystem::path directory(path);
  if (directory.has_parent_path()) std::filesystem::create_directories(directory.parent_path(), ec);
  if (!ec && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) ec = {errno, std::generic_category()};
  if (!ec && !std::filesystem::is_directory(path, ec) && !ec) ec = std::make_error_code(std::errc::not_a_directory);
  if (!ec && ::access(path.c_str(), R_OK | W_OK | X_OK) != 0) ec = {errno, std::generic_category()};
  if (ec) return fail(Errc::storage_failed, fmt::format("cannot use the data directory {}: {}", path, ec.message()));
  return {};
}

// Each connection is a descriptor; the usual limit of 1,024 is for programs that use select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

std::string database_path(const std::string& data) { return data + "/belfry.db"; }

// Whether the data's files are still in their place, once a second: whoever sends nothing learns of it, too.
class FileWatch final : public DueSource {
 public:
  FileWatch(Clock& clock, store::Store& store) : store_(store), next_(clock.now().boot + kEvery) {}

  std::optional<Due> next_due(const Now&) const override { return next_; }
  Task<int> fire_due(Now now, int) override {
    if (now.boot < next_) co_return 0;
    next_ = now.boot + kEvery;
    store_.look_at_files();
    co_return 1;
  }

 private:
  static constexpr Nanos kEvery = std::chrono::seconds{1};

  store::Store& store_;
  BootTime next_;
};

// Members in the order in which they need each other.
struct Runtime::Parts {
  explicit Parts(Options given)
      : options(std::move(given)),
        clock(context),
        client(context, clock),
        timekeeper(clock),
        tasks(context),
        signals(context) {}

  Options options;
  asio::io_context context{1};
  RealClock clock;
  SystemRandom random;
  net::SocketClient client;
  std::optional<store::FolderLock> lock;
  std::optional<store::Store> store;
  std::optional<FileWatch> file_watch;
  Timekeeper timekeeper;
  std::optional<bus::MessageBus> bus;
  std::optional<chat::Chats> chats;
  std::optional<chat::Outbox> outbox;
  std::optional<chat::Webhooks> webhooks;
  std::optional<chat::PrivateMessages> scheduled;
  std::optional<bus::TimeReader> times;
  std::optional<tool::Executor> tools;
  std::optional<llm::Client> model;
  std::optional<plugin::Catalog> catalog;
  std::optional<plugin::Watcher> watcher;
  std::optional<plugin::ProcessHost> host;
  std::optional<run::Toolbox> toolbox;
  std::optional<run::Runs> runs;
  std::optional<run::PluginOffer> offer;
  std::optional<agent::Roster> roster;
  std::optional<agent::Planner> planner;
  std::optional<agent::Memory> memory;
  std::optional<agent::Processor> agents;
  TaskGroup tasks;
  std::optional<server::HttpServer> server;
  asio::signal_set signals;
  int signals_seen = 0;
  bool all_forced = false;  // what was delayed is pending from the next start on

  Result<> open();
  Result<> open_store();
  void open_planner();
  void open_runs();
  void read_plugins();
  server::AgentControl control();
  Task<Result<int>> cancel_turns(std::string session, std::string agent);
  Task<Result<>> add_agent(std::string name, std::string profile);
  Task<Result<>> change_agent(std::string name, std::string profile);
  Task<Result<std::string>> turns_of(std::string name, int limit);
  Task<Result<std::string>> facts_about(std::string person);
  Task<Result<std::int64_t>> forget_about(std::string person, std::optional<std::int64_t> number);
  Task<void> add_configured_agents();
  Task<void> welcome();
  std::string more_metrics() const;
  std::string model_metrics() const;
  Task<void> add_default_members();
  void log_start() const;
  void wait_for_signal();
  void signalled(int number);
  [[noreturn]] void exit_now();
  Task<void> stop();
  Task<void> stop_tools(BootTime deadline);
  Task<void> end_plugins(BootTime last_call, BootTime deadline, Wake& ended);
  Task<bool> deliver_delayed();
  void log_waiting(BootTime patience) const;
  void log_stopped() const;
};

Result<> Runtime::Parts::open_store() {
  store::Options store_options;
  store_options.stopwatch = [] { return read_real_clocks().boot.time_since_epoch(); };
  store_options.on_broken = [flush = options.flush_log](const std::string& what) {
    log::error("store.broken",
               "the disk failed while writing; whether the last messages were stored is unknown, and the "
               "next start finds out",
               {{"what", what}});
    flush();
    ::_exit(kExitBroken);
  };
  BELFRY_TRY(store::FolderLock taken, store::FolderLock::take(options.data));
  lock = std::move(taken);
  try {
    check_program(database_path(options.data));
    auto connection =
        store::sqlite::open({.path = database_path(options.data), .accept_loss = options.accept_loss, .now_ms = [] {
                               return to_ms(round_down(read_real_clocks().wall));
                             }});
    if (options.accept_loss)
      log::warn("store.loss_accepted",
                "acknowledged commits are missing, and that was accepted: what is left is served");
    auto reserve = std::make_unique<store::FileReserve>(options.data + "/reserve");
    store.emplace(context, std::move(connection), std::move(store_options), std::move(reserve));
    file_watch.emplace(clock, *store);
    timekeeper.add(*file_watch);
    bus.emplace(context, clock, random, *store, timekeeper,
                bus::BusOptions{.retention = options.config.retention, .attempts_max = options.config.attempts_max});
    chats.emplace(context, clock, random, *store, *bus, timekeeper);
    outbox.emplace(context, clock, *store, *chats, timekeeper, client, options.config.retention);
    webhooks.emplace(clock, *store, *chats, *outbox, options.config.retention);
    scheduled.emplace(context, clock, *store, *chats, *outbox, timekeeper,
                      chat::PrivateMessagesOptions{.retention = options.config.retention});
    const Millis calls_retention = options.config.runs_retention;
    // Under its callId a call is made once for as long as a message under its key, at least.
    tools.emplace(clock, *store, *chats,
                  calls_retention > Millis{0} ? std::max(calls_retention, options.config.retention) : Millis{0});
    roster.emplace(*store, *bus);
    open_planner();
    open_runs();
    agents.emplace(context, clock, *store, *bus, *tools,
                   agent::ProcessorOptions{.max_concurrent = options.config.agents_at_once});
  } catch (const store::Fault& fault) {
    return std::unexpected(error_of(fault, options.data));
  }
  return {};
}

void Runtime::Parts::open_planner() {
  if (options.model) model.emplace(client, clock, random, *options.model);
  llm::Model* const asked = model ? &*model : nullptr;
  const agent::PlannerOptions planner_options{.task_max = options.config.task_max,
                                              .give_up_after = options.config.llm.give_up_after,
                                              .retention = options.config.retention,
                                              .zone = locale_of(options.config).zone};
  planner.emplace(agent::Planner::Parts{.context = context,
                                        .clock = clock,
                                        .store = *store,
                                        .chats = *chats,
                                        .tools = *tools,
                                        .roster = *roster,
                                        .model = asked},
                  planner_options);
  memory.emplace(context, clock, *store, *chats, *roster, asked, options.config.task_max.calls);
}

void Runtime::Parts::open_runs() {
  const Locale locale = locale_of(options.config);
  times.emplace(
      clock, bus::TimeReader::Options{.zone = locale.zone, .zone_source = locale.source, .language = locale.language});
  const auto files = (std::filesystem::absolute(options.data) / "files").lexically_normal();
  plugin::HostOptions host_options{.timezone = tz_variable(locale.zone), .adopt_orphans = true};
  host_options.sandbox = options.config.sandbox;
  host_options.sandboxes = options.config.sandboxes;
  host_options.amounts = options.config.plugin_amounts;
  host_options.landlock_abi_max = options.config.landlock_abi_max;
  host_options.work = files;
  // In a container each life may have the same process number.
  host_options.work_prefix = fmt::format(".work-{}-", clock.now().boot.time_since_epoch().count());
  host_options.discard = [this](const std::string& name) { runs->discard(name); };
  host.emplace(context, clock, host_options);
  toolbox.emplace(*tools, *host);
  run::RunsOptions runs_options{.slots = options.config.tools_at_once,
                                .overlays = options.config.overlays,
                                .retention = options.config.runs_retention,
                                .zone = locale.zone,
                                .files = files,
                                .spared = host_options.work_prefix,
                                .side_threads = kSideThreads,
                                .may_use = {}};
  runs_options.may_use = [this](const std::string& name, const std::string& tool) {
    const auto profile = roster->find(name);
    return !profile || profile->may_use(tool);
  };
  runs.emplace(run::Runs::Parts{.context = context,
                                .clock = clock,
                                .store = *store,
                                .bus = *bus,
                                .chats = *chats,
                                .timekeeper = timekeeper,
                                .times = *times,
                                .tools = *toolbox,
                                .model = model ? &*model : nullptr},
               std::move(runs_options));
  offer.emplace(*tools, *toolbox, *runs);
}

// Those that Belfry brings along and those of the settings; again whenever something changes there.
void Runtime::Parts::read_plugins() {
  std::vector<std::filesystem::path> folders;
  if (const auto bundled = bundled_plugins(); !bundled.empty()) {
    folders.push_back(bundled);
  } else {
    log::warn("plugin.none_bundled",
              "the bundled plugins are not beside the program; docs/plugins.md says where they belong");
  }
  for (const std::string& folder : options.config.plugins) folders.push_back(std::filesystem::absolute(folder));
  catalog.emplace(folders, [](std::string_view schema) -> Result<> {
    const auto compiled = tool::Schema::compile(schema);
    if (!compiled) return std::unexpected(compiled.error());
    return {};
  });
  watcher.emplace(context, clock, folders, [this] {
    if (!catalog->scan()) return;
    offer->set(catalog->all());
    host->renew(catalog->all());
    log::info("plugin.reloaded", "the plugins have changed",
              {{"plugins", catalog->all().size()}, {"broken", catalog->broken().size()}});
  });
  watcher->start();
  catalog->scan();
  offer->set(catalog->all());
}

// Whoever is told to stop need not wait for its tools either.
Task<Result<int>> Runtime::Parts::cancel_turns(std::string session, std::string agent) {
  const auto cancelled = co_await planner->cancel(session, agent);
  co_await runs->cancel_awaited(session, agent);
  co_return cancelled;
}

server::AgentControl Runtime::Parts::control() {
  server::AgentControl all;
  all.runs = [this](const std::string& kind) { return agents->hosts(kind); };
  all.is_stopped = [this](const std::string& name) { return agents->is_stopped(name); };
  all.set_stopped = [this](std::string name, bool stopped) { return agents->set_stopped(std::move(name), stopped); };
  all.thinking_kind = agent::kModelKind;
  all.profile = [this](const std::string& name) {
    const auto profile = roster->find(name);
    return profile ? agent::stored(*profile) : std::string();
  };
  all.add = [this](std::string name, std::string profile) { return add_agent(std::move(name), std::move(profile)); };
  all.change = [this](std::string name, std::string profile) {
    return change_agent(std::move(name), std::move(profile));
  };
  all.remove = [this](std::string name) { return roster->remove(std::move(name)); };
  all.turns = [this](std::string name, int limit) { return turns_of(std::move(name), limit); };
  all.cancel = [this](std::string session, std::string name) {
    return cancel_turns(std::move(session), std::move(name));
  };
  all.facts = [this](std::string person) { return facts_about(std::move(person)); };
  all.forget = [this](std::string person, std::optional<std::int64_t> number) {
    return forget_about(std::move(person), number);
  };
  return all;
}

Task<Result<>> Runtime::Parts::add_agent(std::string name, std::string profile) {
  BELFRY_CO_TRY(agent::Profile read, agent::read_profile(profile));
  co_return co_await roster->add(std::move(name), std::move(read));
}

Task<Result<>> Runtime::Parts::change_agent(std::string name, std::string profile) {
  const auto before = roster->find(name);
  if (!before) co_return fail(Errc::not_found, fmt::format("\"{}\" is not an agent that thinks", name));
  BELFRY_CO_TRY(agent::Profile read, agent::read_profile(profile, *before));
  co_return co_await roster->change(std::move(name), std::move(read));
}

Task<Result<std::string>> Runtime::Parts::turns_of(std::string name, int limit) {
  BELFRY_CO_TRY(const std::vector<agent::Turn> turns, co_await planner->turns(std::move(name), limit));
  co_return agent::turns_json(turns);
}

Task<Result<std::string>> Runtime::Parts::facts_about(std::string person) {
  if (!chats->is_person(person)) co_return fail(Errc::not_found, fmt::format("there is no person \"{}\"", person));
  BELFRY_CO_TRY(const std::vector<agent::Fact> facts, co_await memory->facts(std::move(person)));
  co_return agent::facts_json(facts);
}

Task<Result<std::int64_t>> Runtime::Parts::forget_about(std::string person, std::optional<std::int64_t> number) {
  if (!chats->is_person(person)) co_return fail(Errc::not_found, fmt::format("there is no person \"{}\"", person));
  if (!number) co_return co_await memory->forget_all(std::move(person));
  BELFRY_CO_CHECK(co_await memory->forget(std::move(person), *number));
  co_return 1;
}

Result<> Runtime::Parts::open() {
  BELFRY_TRY(const net::HostPort listen, net::parse_host_port(options.config.listen));
  BELFRY_CHECK(server::HttpServer::check_address(listen.host, !options.token.empty()));
  // A first start that nobody could reach is to leave no data behind. Where there is data, whoever is using it is told
  // about first: most likely they have the port, too.
  std::error_code ec;
  if (!std::filesystem::exists(database_path(options.data), ec))
    BELFRY_CHECK(server::HttpServer::check_port(listen.host, listen.port));
  BELFRY_CHECK(prepare_data_directory(options.data));
  BELFRY_CHECK(open_store());
  const Locale locale = locale_of(options.config);
  for (auto& tool : tool::make_builtin_tools({.clock = clock, .bus = *bus, .times = *times, .scheduled = *scheduled}))
    tools->add(std::move(tool));
  for (auto& tool : agent::make_agent_tools({.bus = *bus, .chats = *chats, .executor = *tools, .roster = *roster}))
    tools->add(std::move(tool));
  for (auto& tool : run::make_run_tools(*runs)) tools->add(std::move(tool));
  read_plugins();
  BELFRY_TRY(auto panel, server::load_panel(options.config.panel));
  server.emplace(context, clock,
                 server::Served{.bus = *bus,
                                .store = *store,
                                .chats = *chats,
                                .scheduled = *scheduled,
                                .webhooks = *webhooks,
                                .tools = *tools,
                                .runs = *runs,
                                .times = *times,
                                .agents = control(),
                                .more_metrics = [this] { return more_metrics(); }},
                 server::ServerOptions{.listen_host = listen.host,
                                       .port = listen.port,
                                       .allow_hosts = options.config.allow_hosts,
                                       .token = options.token,
                                       .timezone = locale.zone.name(),
                                       .panel = std::move(panel),
                                       .connections_max = options.config.connections_max});
  BELFRY_CHECK(server->listen());
  options.config.listen = net::HostPort{listen.host, server->port()}.text();
  return {};
}

// Agents can write to `user` without anybody having introduced them, and people can talk to the concierge.
Task<void> Runtime::Parts::add_default_members() {
  const auto added = co_await chats->add_person(chat::kDefaultPerson);
  if (!added) log::warn("chat.no_default_person", "there is no person \"user\"", {{"what", added.error().detail}});
  auto nothing_else = [](store::Connection&) -> Result<bool> { return true; };
  const auto hired = co_await bus->add_recipients({agent::kConcierge}, agent::kConcierge, std::move(nothing_else));
  if (!hired) log::warn("agent.no_concierge", "there is no agent \"concierge\"", {{"what", hired.error().detail}});
}

// Those of the settings, made as they stand there; with a model and none named, one that anybody can talk to.
Task<void> Runtime::Parts::add_configured_agents() {
  std::vector<AgentConfig> wanted = options.config.agents;
  // As somebody may have changed it since, it is made once.
  if (wanted.empty() && options.model && !bus->recipient(kAssistant)) wanted.push_back({.id = kAssistant});
  for (AgentConfig& one : wanted) {
    const std::string id = one.id;
    const auto made = co_await roster->put(id, std::move(one.profile));
    if (!made)
      log::error("agent.not_made", "an agent of the settings could not be made",
                 {{"id", id}, {"what", made.error().detail}});
  }
}

std::string Runtime::Parts::more_metrics() const {
  return fmt::format(
             "# TYPE belfry_tools_running gauge\nbelfry_tools_running {}\n"
             "# TYPE belfry_tools_waiting gauge\nbelfry_tools_waiting {}\n",
             runs->running(), runs->waiting()) +
         model_metrics();
}

std::string Runtime::Parts::model_metrics() const {
  if (!model) return {};
  const llm::Statistics& seen = model->statistics();
  std::string text = "# TYPE belfry_model_requests_total counter\n";
  for (const auto& [outcome, count] :
       {std::pair("answered", seen.answered), std::pair("refused", seen.refused), std::pair("garbled", seen.garbled),
        std::pair("unavailable", seen.unavailable), std::pair("cancelled", seen.cancelled)})
    text += fmt::format("belfry_model_requests_total{{outcome=\"{}\"}} {}\n", outcome, count);
  text += fmt::format(
      "# TYPE belfry_model_tokens_total counter\n"
      "belfry_model_tokens_total{{kind=\"prompt\"}} {}\nbelfry_model_tokens_total{{kind=\"completion\"}} {}\n"
      "# TYPE belfry_model_circuit_opened_total counter\nbelfry_model_circuit_opened_total {}\n"
      "# TYPE belfry_agents_thinking gauge\nbelfry_agents_thinking {}\n",
      seen.prompt_tokens, seen.completion_tokens, seen.circuit_opened, planner->thinking());
  return text;
}

// Ready means that those are there whom anybody may write to.
Task<void> Runtime::Parts::welcome() {
  co_await add_default_members();
  co_await add_configured_agents();
  options.ready("http://" + options.config.listen);
}

void Runtime::Parts::log_start() const {
  const bus::Totals totals = bus->totals();
  const log::Fields fields{{"version", BELFRY_VERSION},
                           {"listen", options.config.listen},
                           {"data", options.data},
                           {"recipients", bus->recipients().size()},
                           {"accepted", totals.accepted},
                           {"live", totals.accepted - totals.acked - totals.cancelled - totals.expired - totals.dead},
                           {"dead", totals.dead}};
  if (bus->started_clean()) {
    log::info("server.started", "the server has started; the last stop was clean", fields);
  } else {
    log::warn("server.started",
              "the server has started; its last life ended without a clean stop, nothing accepted is lost", fields);
  }
}

void Runtime::Parts::wait_for_signal() {
  signals.async_wait([this](const boost::system::error_code& ec, int number) {
    if (ec) return;
    signalled(number);
    wait_for_signal();
  });
}

void Runtime::Parts::signalled(int number) {
  if (++signals_seen > 1) exit_now();
  log::info("server.stopping", "stopping; a second signal ends the process at once",
            {{"signal", number == SIGINT ? "SIGINT" : "SIGTERM"}});
  tasks.spawn("stop", stop());
}

// The second signal: as safe as a kill -9, and as quick (D13).
void Runtime::Parts::exit_now() {
  std::signal(SIGALRM, [](int) { ::_exit(kExitForced); });
  ::alarm(kFlushSecondsMax);
  const std::int64_t count = bus->delayed_count();
  log::warn("server.forced_exit", "强制退出，延迟消息保留在存储中",
            {{"count", count}, {"forced", all_forced ? count : 0}});
  options.flush_log();
  ::_exit(kExitForced);
}

// True if everything that was delayed is pending now.
Task<bool> Runtime::Parts::deliver_delayed() {
  const auto forced = co_await bus->mark_all_delayed_as_forced();
  if (forced) {
    log::info("server.forced_delivery", "关闭时强制投递延迟消息", {{"count", *forced}});
  } else {
    log::error("server.forced_delivery_failed",
               "delayed messages stay scheduled: they could not be marked as delivered",
               {{"what", forced.error().detail}});
  }
  co_return forced.has_value();
}

// `ended` lives until this has returned.
Task<void> Runtime::Parts::end_plugins(BootTime last_call, BootTime deadline, Wake& ended) {
  while (runs->running() > 0 && clock.now().boot < last_call) co_await clock.sleep_until(last_call, ended);
  co_await host->stop(deadline);
}

// Tools at work are waited for, as long as there is time to end those that do not end by themselves.
Task<void> Runtime::Parts::stop_tools(BootTime deadline) {
  const BootTime last_call = std::max(clock.now().boot, deadline - kPluginGrace);
  Wake ended;
  TaskGroup beside(context);
  beside.spawn("end plugins", end_plugins(last_call, deadline, ended));
  co_await runs->stop(last_call);
  ended.ring();
  co_await beside.join();
}

// Said at once: whoever pressed Ctrl-C wonders what it waits for.
void Runtime::Parts::log_waiting(BootTime patience) const {
  const std::int64_t held = bus->in_flight();
  if (held == 0) return;
  const Now now = clock.now();
  const WallTime until = round_up(now.wall + (patience - now.boot));
  log::info("server.waiting",
            fmt::format("waiting for {} message{} in receivers' hands, at most until {}", held, held == 1 ? "" : "s",
                        to_iso(until)),
            {{"inFlight", held}, {"until", until}});
}

void Runtime::Parts::log_stopped() const {
  bus::Totals totals = bus->totals();
  if (all_forced) {
    // One row on the disk has made them pending; the counters of this life never see it.
    totals.live.pending += totals.live.delayed;
    totals.live.delayed = 0;
  }
  log::info("server.stopped", "the server has stopped",
            {{"accepted", totals.accepted},
             {"delayed", totals.live.delayed},
             {"pending", totals.live.pending},
             {"inFlight", totals.live.in_flight},
             {"acked", totals.acked},
             {"cancelled", totals.cancelled},
             {"expired", totals.expired},
             {"dead", totals.dead}});
}

Task<void> Runtime::Parts::stop() {
  const Nanos grace = std::min<Nanos>(kCloseGrace, options.config.stop_deadline / 4);
  const BootTime patience = clock.now().boot + options.config.stop_deadline - grace;
  // Agents at work finish what they do, and what they send is taken like everybody's; half of the time is left for the
  // receivers outside.
  log_waiting(patience);
  agents->close();
  runs->close();
  planner->close();
  memory->close();
  co_await agents->stop(clock.now().boot + options.config.stop_deadline / 2);
  bus->refuse_sends();
  outbox->close();
  chats->release_readers();
  co_await server->begin_stop(patience);
  if (options.config.on_stop == OnStop::deliver) all_forced = co_await deliver_delayed();
  co_await bus->wait_until_idle(patience);
  co_await stop_tools(patience);
  co_await watcher->stop();
  co_await outbox->stop(patience);
  co_await server->close(std::min(clock.now().boot + kCloseGrace, patience + grace / 2));
  timekeeper.stop();
  co_await scheduled->stop();
  co_await planner->stop();
  co_await memory->stop();
  co_await client.stop();
  co_await chats->stop();
  co_await bus->stop();
  // The last write there is: when it is done, nothing of the bus is left in the store's queue.
  const auto noted = co_await bus->note_clean_stop();
  if (!noted) log::error("server.unclean_stop", "the clean stop could not be noted", {{"what", noted.error().detail}});
  log_stopped();
  boost::system::error_code ignored;
  signals.cancel(ignored);
  clock.stop();
}

Runtime::Runtime(Options options) : parts_(std::make_unique<Parts>(std::move(options))) {}
Runtime::~Runtime() = default;

Result<> Runtime::open() {
  // From here on: a signal that comes while the data is opened stops the server as soon as it runs.
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on a file's size is a full disk
  parts_->signals.add(SIGINT);
  parts_->signals.add(SIGTERM);
  return parts_->open();
}

void Runtime::run() {
  Parts& parts = *parts_;
  raise_descriptor_limit();
  std::signal(SIGPIPE, SIG_IGN);
  parts.store->start();
  parts.bus->start();
  parts.chats->start();
  parts.runs->start();
  parts.agents->host("echo", agent::make_echo);
  parts.agents->host(agent::kConcierge, [&parts] { return agent::make_concierge(*parts.chats, *parts.times); });
  parts.agents->host(agent::kModelKind, [&parts] { return parts.planner->make_agent(); },
                     {.lanes = agent::Lanes::one_a_conversation, .turn_max = kThinkingMax});
  parts.tasks.spawn("welcome", parts.welcome());
  parts.tasks.spawn("timekeeper", parts.timekeeper.run());
  parts.server->start();
  parts.log_start();
  parts.wait_for_signal();
  parts.context.run();
}

}  // namespace belfry::app
