// Changes one run in a transaction: what happens to a step, and what follows from it for the others, for those who listen
// to events, and for the conversation. Everything that a run ever says is written here (F3, F4, F8, F9).
//
// Lives for one job, on the store's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "belfry/chat/chats.h"
#include "belfry/run/run.h"
#include "belfry/run/run_tables.h"

namespace belfry::run {

// When a step is to report.
struct Appointment {
  WallTime at;
  Millis delay{0};
  bool elapsed = false;
};

// A tool's end, as it is stored.
struct Ended {
  Ending ending = Ending::success;
  std::string result;  // JSON: its data, or {"code", "message"}
};
Ended failed(std::string_view code, std::string_view message, Ending ending = Ending::failure);

// What is to be told once it is on the disk.
struct Changes {
  Run run;  // as it is now, without arguments and results
  std::vector<Event> events;
  std::vector<chat::Chats::Said> said;
  std::vector<int> ready;    // steps that may run now
  std::vector<int> stopped;  // steps whose tools are not to go on
  std::optional<std::int64_t> next_ms;
  bool changed = false;
};

// What an edit must know of the world.
struct Moment {
  WallTime now;
  std::int64_t set_ms = 0;  // by how much the clock on the wall has been set in this life
  bool drafts = false;      // there is a model that writes progress texts
};

class Edit {
 public:
  Edit(store::Connection& connection, Run run, Moment moment);

  // A new one, which has its number: its first events, and what can run at once.
  void begin();
  void start(int step, std::string arguments, std::optional<Appointment> appointment);
  // Its tool has ended; or it cannot even start.
  void end(int step, Ended ended);
  // `text` says that it goes on, if it does.
  void come_due(int step, const std::string& text);
  void cancel();
  // It was not done, and has its turn again.
  void try_again(int step);
  // The server died while it ran. How often that has been.
  int note_crash(int step);

  // Whether the step is such that this can still be done with it.
  bool can_start(int step) const;
  bool is_running(int step) const;

  Changes take();

 private:
  Step& at(int step) { return changes_.run.steps.at(static_cast<std::size_t>(step)); }
  const Step& at(int step) const { return changes_.run.steps.at(static_cast<std::size_t>(step)); }
  void put(const Step& step);
  void note_time(const Step& step);
  DueRow feedback_row(const Step& step) const;
  DueRow draft_row(const Step& step) const;
  void forget_time(const Step& step);
  void report(Step& step);
  void settle();
  bool settle(Step& step);
  void finish();
  void add_event(std::string_view type, const Step* step, std::string members);
  void say(const Step& step, std::string_view suffix, std::string text, bool with_result);

  store::Connection& connection_;
  Moment moment_;
  WallTime now_;
  Changes changes_;
};

}  // namespace belfry::run
