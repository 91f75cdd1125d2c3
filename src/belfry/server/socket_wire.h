// What is said over the panel's WebSocket: JSON to types and back. docs/panel.md has the frames.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "belfry/bus/envelope.h"
#include "belfry/chat/chats.h"
#include "belfry/run/run.h"

namespace belfry::server::wire {

// --- from the client ---

struct Hello {
  struct Known {
    std::string session;
    std::int64_t after = 0;
  };
  std::string token;
  std::string person;
  std::vector<Known> sessions;
};
struct Subscribe {
  Hello::Known known;
};
struct Unsubscribe {
  std::string session;
};
struct SendLine {
  chat::Post post;
};
// What the agent is writing there is not wanted any more.
struct Stop {
  std::string session;
  std::string agent;
};
// The events of a run, from a number on.
struct WatchRun {
  std::string run;
  std::int64_t after = 0;
};
struct Ping {};
using ClientFrame = std::variant<Hello, Subscribe, Unsubscribe, SendLine, Stop, WatchRun, Ping>;
Result<ClientFrame> read_client_frame(std::string_view text);

// --- to the client: the text of a frame ---

std::string welcome(std::string_view version, WallTime now, const std::string& person, const std::string& timezone);
std::string pong(WallTime now);
std::string message(const std::string& session, const chat::Line& line);
std::string caught_up(const std::string& session, std::int64_t seq);
std::string activity(const std::string& session, const chat::Line& line);
std::string sent(const chat::Post& post, const chat::Posted& posted);
std::string socket_error(const Error& error, const std::string& session, const std::string& key);
std::string draft(const std::string& session, const chat::Draft& draft, bool ended);
std::string coming_changed(const std::string& session);
std::string counts(const bus::Counts& all, std::int64_t delayed_for_person);
std::string stopping();
std::string run_changed(const run::Run& run);
std::string run_progress(const run::Run& run, int step, const std::string& progress);
std::string run_event(const run::Event& event);

// --- over HTTP ---

// Everything that is to come in one conversation.
struct ComingItem {
  enum class Kind { message, scheduled, question, run };
  Kind kind = Kind::message;
  std::string id;
  std::string from;
  std::string to;
  std::string text;
  WallTime at;
  WallTime created_at;
  std::vector<std::string> quick_replies;
  bool in_outbox = false;
  std::int64_t seq = 0;    // of a question
  std::string on_timeout;  // of a question
  std::string run;         // of a run's step
  int step = 0;
  std::string state;
};
std::string coming(const std::vector<ComingItem>& items, bool more, WallTime now);

}  // namespace belfry::server::wire
