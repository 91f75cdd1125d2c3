// Runs: tools that start now and report at the promised time, alone or as a plan of steps (F1 to F11, F14, G13).
//
// Everything that is to happen later is a row with a time: results that are held, notices that something goes on, texts to
// be drafted, agents to be told. A step's end and its result, its events and what they say in a conversation are one
// transaction; so a crash neither loses nor doubles anything. What ran when the server died is started again only if its
// plugin says that this does no harm, and not for ever: it may be what kills the server.
//
// Only what runs or waits for its turn is in memory: ten thousand results that are held cost disk.
//
// Lives on the kernel's thread.
#pragma once

#include <unistd.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "belfry/base/cancel.h"
#include "belfry/base/limits.h"
#include "belfry/base/side_threads.h"
#include "belfry/base/task_group.h"
#include "belfry/bus/message_bus.h"
#include "belfry/bus/time_reader.h"
#include "belfry/chat/chats.h"
#include "belfry/clock/pauses.h"
#include "belfry/due/due_rows.h"
#include "belfry/llm/model.h"
#include "belfry/run/edit.h"
#include "belfry/run/files.h"
#include "belfry/run/run.h"
#include "belfry/run/run_tables.h"
#include "belfry/run/slots.h"
#include "belfry/run/toolbox.h"

namespace belfry::run {

// Steps that wait for their turn are in memory.
inline constexpr std::size_t kWaitingMax = 10'000;
inline constexpr int kEventsPageMax = 500;
// Each may carry a large result: a page is one answer.
inline constexpr std::size_t kEventsPageBytesMax = 4u << 20;

struct NewRun {
  Plan plan;
  Overlays overlays;
  std::string agent;    // on whose behalf
  std::string session;  // where it is said
  std::string task;
  std::string reply_to;  // to whom, there; empty: the first person
  std::string timezone;  // of schedules that name none; empty: the session's, or the server's
  bool in_turn = false;  // the agent need not be in the session: it handles a message of it
  bool quiet = false;    // whoever waits for it says it: nothing goes into the conversation
  bool tells_agent = false;
  std::string once;  // under this name there is one run
  std::string body;  // what was asked for: another one under the same name is refused. Empty: not compared
};

struct RunsOptions {
  SlotLimits slots;
  Overlays overlays;    // for runs that bring none
  Millis retention{0};  // how long runs that have ended are kept; 0: until somebody deletes them
  when::Zone zone = when::Zone::utc();
  std::filesystem::path files;  // where tools leave theirs; empty: nowhere
  std::string spared{};         // folders among them whose names begin so are at work in this life; empty: none
  int side_threads = 0;         // for slow work on those; 0: it is done at once
  Sync sync = ::fsync;          // as the disk does it
  // Whether an agent may use a tool.
  std::function<bool(const std::string& agent, const std::string& tool)> may_use;
};

// Hears what happens, once it is on the disk.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void happened(const Event& /*event*/) {}
  // How a run stands now, without arguments and results.
  virtual void changed(const Run& /*run*/) {}
  // What a tool says while it works; it is stored nowhere. Of much in a short time only the latest is told.
  virtual void progressed(const Run& /*run*/, int /*step*/, const std::string& /*progress*/) {}
};

struct EventsRequest {
  std::string id;
  std::int64_t after = 0;
  int limit = kEventsPageMax;
  std::size_t bytes_max = kEventsPageBytesMax;  // and the one that goes beyond them
  Millis wait{0};                               // for something to come, if there is nothing
  std::shared_ptr<bus::Departure> departure;    // none: the reader stays to the end
};

class Runs {
 public:
  // What it works with; outlives it.
  struct Parts {
    asio::io_context& context;
    Clock& clock;
    store::Store& store;
    bus::MessageBus& bus;
    chat::Chats& chats;
    Timekeeper& timekeeper;
    const bus::TimeReader& times;
    Toolbox& tools;
    llm::Model* model = nullptr;  // none: progress is told in the same words every time
  };
  // Makes its tables. Before store.start(); throws store::Fault.
  explicit Runs(Parts parts, RunsOptions options = {});
  ~Runs();

  // After bus.start() and once the plugins are known: what was running when the last life ended gets its end.
  void start();
  // From here on nothing is started, and nobody waits for anything.
  void close();
  // Waits for the tools at work, until the deadline; then ends them, and the next start finds them interrupted.
  Task<void> stop(BootTime deadline);

  void listen(Listener& listener) { listeners_.push_back(&listener); }
  void unlisten(Listener& listener) { std::erase(listeners_, &listener); }

  struct Created {
    Run run;
    bool repeated = false;
  };
  // Refuses what cannot be carried out, before anything is started.
  Task<Result<Created>> create(NewRun wanted);
  // How schedules were read that count from the beginning of the plan.
  Readings readings(const Run& run) const;
  // With `beginnings` as much of arguments and results as people are shown, with `outline` nothing of them.
  Task<Result<Run>> get(std::string id, Detail detail = Detail::results);
  Task<Result<std::vector<Run>>> list(RunTables::Query query, std::string before_id = {});
  // What is to be reported in a session, with the next one first.
  Task<Result<std::vector<RunTables::Coming>>> coming_in(std::string session, int limit);
  // `wrong_state` if it has ended.
  Task<Result<Run>> cancel(std::string id);
  // Forgets one that has ended, with its files; `wrong_state` if it has not.
  Task<Result<>> remove(std::string id);
  // Those whose agent (empty: any) waits for them in this session: it was told to stop.
  Task<void> cancel_awaited(std::string session, std::string agent);
  // The end of it, however long that takes; `stopping` if the server ends before.
  Task<Result<Run>> finished(std::string id);
  Task<Result<std::vector<Event>>> events(EventsRequest request);

  // Removes a folder among those of runs, as if it were that of a run that is forgotten.
  void discard(const std::string& name) { remove_files({name}); }
  const std::filesystem::path& files() const { return options_.files; }
  bool closed() const { return closed_; }
  std::size_t running() const { return jobs_.size(); }
  std::size_t waiting() const { return slots_.waiting(); }

 private:
  class Reader;
  struct Started;
  struct JobState {
    std::shared_ptr<Cancel> cancel;
    Run run;
    std::string progress{};  // said, and not told yet; empty: nothing
    std::string told{};      // the last of it, for those who look later
    BootTime quiet_until{};  // whoever tells before would tell too much
    bool will_tell = false;
  };
  struct DraftState {
    std::string text;  // empty: not written yet
    std::shared_ptr<Cancel> cancel;
  };

  // runs.cpp
  Result<> check(NewRun& wanted) const;
  Result<Ability> check_step(const NewRun& wanted, int index) const;
  Result<Appointment> appoint(const Schedule& schedule, WallTime from) const;
  Result<Run> prepare(NewRun wanted);
  void add_progress(Run& run) const;
  static Result<> place(store::Connection& connection, const NewRun& wanted, Run& run);
  void apply(const Changes& changes);

  // runs_files.cpp
  Task<Result<>> sync_files_of(StepKey key, std::string id);
  void remove_files(const std::vector<std::string>& ids);
  Task<void> remove_waiting();
  Task<void> remove_files_of(std::string id);
  Task<void> sweep_files();

  // runs_steps.cpp
  Task<void> recover();
  Task<void> take_up(StepKey key, bool idempotent);
  void hold_back(const Ability& tool, Millis pause);
  Task<void> remember_pauses();
  void queue(StepKey key, const std::string& tool);
  void pump();
  Task<void> look_after(BootTime due);
  Task<void> work(StepKey key);
  Task<void> put_back(StepKey key);
  Task<Result<std::optional<Started>>> begin(StepKey key);
  Task<plugin::Outcome> perform(Started started, StepKey key);
  Task<void> record_end(StepKey key, Ended ended);
  void take_progress(StepKey key, std::string said);
  void tell_progress(StepKey key);
  Task<void> tell_progress_later(StepKey key, Millis pause);
  Task<Result<Changes>> edit(std::int64_t run, std::function<bool(Edit&)> change);
  Task<Result<Changes>> edit_surely(std::int64_t run, std::function<bool(Edit&)> change);

  // runs_due.cpp
  Task<bool> work_off();
  Task<void> draft(StepKey key);
  void drop_draft(StepKey key);
  Task<bool> tell_some();
  Task<bool> tell(std::int64_t run);
  bool clock_was_set(const Now& now) const;
  bool is_behind(const Now& now) const;  // stored times do not know yet that it was
  // Reads the clocks, and takes note if one of them was set.
  Moment moment();
  static Nanos wall_minus_boot(const Now& now) { return now.wall.time_since_epoch() - now.boot.time_since_epoch(); }

  WallTime now() const { return round_down(parts_.clock.now().wall); }

  Parts parts_;
  RunsOptions options_;
  Slots slots_;
  std::map<StepKey, JobState> jobs_;  // tools at work
  std::map<StepKey, DraftState> drafts_;
  std::unordered_map<std::int64_t, std::vector<Reader*>> readers_;
  std::vector<Listener*> listeners_;
  Nanos anchor_;                 // the wall clock before the elapsed one, when it was last looked at
  std::int64_t set_ms_ = 0;      // by how much the wall clock has been set in this life
  std::int64_t shifted_ms_ = 0;  // the same, as the stored times know it
  bool recovered_ = false;
  bool closed_ = false;
  bool stopping_ = false;
  std::deque<std::string> to_remove_;  // runs whose files are to go
  bool removing_ = false;
  std::optional<BootTime> looking_;  // when the next pause of a tool ends
  Wake idle_;                        // rung when a tool has ended
  SideThreads side_;
  Pauses pauses_;
  DueRows due_;
  DueRows telling_;  // apart: agents that cannot be told hold up no result
  TaskGroup tasks_;
};

}  // namespace belfry::run
