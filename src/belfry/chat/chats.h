// People, sessions and what is said in them.
//
// A session is a conversation: private (one person, one agent) or a group. Its log has dense sequence numbers and never
// loses a line; a call that returned success is on the disk. A line with quick replies is a question: the first answer
// wins, a typed reply closes what its agent asked, and a deadline may end it (Q7, Q9).
//
// What reaches a person is a Saying, and written in one place whatever it is (A8): what the bus has for people, and what
// deadlines say. What a person says goes through post(), which hands it to the agents it is meant for in the same
// transaction.
//
// Lives on the kernel's thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "belfry/base/random.h"
#include "belfry/base/task_group.h"
#include "belfry/bus/message_bus.h"
#include "belfry/chat/chat_tables.h"
#include "belfry/chat/conversation.h"
#include "belfry/chat/drafts.h"
#include "belfry/clock/clock.h"
#include "belfry/clock/pauses.h"
#include "belfry/due/due_rows.h"
#include "belfry/store/store.h"

namespace belfry::chat {

inline constexpr std::size_t kMembersMax = 100;
inline constexpr std::size_t kTitleBytesMax = 200;
// What one person can say at once: a long letter.
inline constexpr std::size_t kTextBytesMax = 100'000;
inline constexpr int kLinesPageMax = 500;

struct NewSession {
  SessionKind kind = SessionKind::private_chat;
  std::vector<std::string> people;
  std::vector<std::string> agents;
  std::string title;
  std::string timezone;
  std::string key;  // a repeat under the same key finds the session that the first one made
};

// Something a person says.
struct Post {
  std::string session;
  std::string from;  // empty: the only person there
  std::string text;  // may be empty with a quick reply: it is that reply's text
  std::string in_reply_to;
  std::optional<int> quick_reply_index;
  std::string key;  // the client's name for this post: a repeat says nothing twice
};

struct Posted {
  std::string id;
  std::int64_t seq = 0;
  bool repeated = false;
  std::vector<std::string> warnings;
};

// Something that is said to a person.
struct Saying {
  std::string id;       // said once under this id
  std::string session;  // empty, or one without the two: their private conversation, made if there is none (A7)
  std::string from;
  std::string to;
  Source source = Source::agent;
  std::string payload;
  std::string task_id;
  std::string in_reply_to;
  std::optional<int> quick_reply_index;
  std::vector<std::string> closes;
  std::optional<WallTime> created_at;  // when it was written, if not now
  std::optional<WallTime> due_at;      // when it was to be said, if it had to wait
  std::string new_session;             // the id of the private conversation if one has to be made
};

struct LinesRequest {
  std::string session;
  std::int64_t after = 0;
  std::optional<std::int64_t> before;  // the last lines before this one instead
  int limit = 100;
  Millis wait{0};                             // for something to come, if there is nothing
  std::shared_ptr<bus::Departure> departure;  // none: the reader stays to the end
};

// Hears every line once it is on the disk: live histories, sockets, memories.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void said(const std::string& session, const Line& line) = 0;
  // Somebody writes something; `ended`: no more, it was said or given up.
  virtual void drafted(const std::string& /*session*/, const Draft& /*draft*/, bool /*ended*/) {}
  // What will be said later in a session, or to a person, is not what it was.
  virtual void coming_in(const std::string& /*session*/) {}
  virtual void coming_for(const std::string& /*person*/) {}
};

struct SearchRequest {
  std::string session;
  std::string text;
  std::int64_t before = INT64_MAX;
  int limit = 50;
};

struct Ending;  // what a deadline does to its question

class Chats final : public bus::Attendant {
 public:
  // Makes or reads its tables. Before store.start(); throws store::Fault.
  Chats(asio::io_context& context, Clock& clock, Random& random, store::Store& store, bus::MessageBus& bus,
        Timekeeper& timekeeper);
  ~Chats() override;

  // After bus.start().
  void start();
  // From here on nobody waits for lines: readers get what there is.
  void release_readers();
  // Ends what runs, which needs the bus: await it before the bus stops.
  Task<void> stop();
  void listen(Listener& listener) { listeners_.push_back(&listener); }
  void unlisten(Listener& listener) { std::erase(listeners_, &listener); }
  // Called when something that was said is to leave by a webhook.
  void on_outgoing(std::function<void()> outgoing) { outgoing_ = std::move(outgoing); }

  // --- people and sessions ---
  Task<Result<>> add_person(std::string name);
  std::vector<std::string> people() const;
  bool is_person(const std::string& name) const;
  struct Opened {
    Session session;
    bool repeated = false;
  };
  Task<Result<Opened>> open(NewSession wanted);
  Task<Result<Session>> session(std::string id);
  // The private one of the two that was used last, if there is one; and opened if there is none.
  Task<Result<std::optional<Session>>> find_private(std::string person, std::string agent);
  Task<Result<Session>> private_session(std::string person, std::string agent);
  Task<Result<ChatTables::SessionPage>> sessions(std::string member, std::string after, int limit);

  // --- lines ---
  Task<Result<Posted>> post(Post post);
  Task<Result<std::vector<Line>>> lines(LinesRequest request);
  Task<Result<ChatTables::Found>> search(SearchRequest request);
  // Open questions with a deadline, and what they ask.
  struct DeadlineOf {
    QuestionRow question;
    std::string text;
  };
  Task<Result<std::vector<DeadlineOf>>> deadlines(std::string session, int limit);

  // --- drafts ---
  // What an agent of the session has written so far: whoever listens sees it grow. An empty text gives it up; a line of
  // the agent's with its id in the payload (`draftId`) takes its place.
  Task<Result<>> draft(std::string session, Draft draft);
  std::vector<Draft> drafts(const std::string& session) const { return drafts_.of(session); }
  // From time to time: those whose agents have been silent for long are over.
  void end_old_drafts();

  void arrived(const std::string& person) override;
  void delayed_changed(const std::string& person) override;
  Result<> admit(const bus::Outgoing& message) const override;

  // For whoever says something in a transaction of its own (A8). Nothing if it was said before; what was is told to
  // those who listen, once it is on the disk.
  struct Said {
    std::string session;
    Line line;
    bool outgoing = false;  // it stands in the outbox, too
  };
  static std::optional<Said> write_saying(store::Connection& connection, const Saying& saying, WallTime now);
  void tell(const Said& said);
  void tell_coming(const std::string& session);
  std::string new_id();

 private:
  // chats.cpp
  Result<> check_known(const NewSession& wanted) const;
  Task<Result<std::vector<Line>>> look(LinesRequest request);

  // chats_deliver.cpp: what the bus has for people
  void deliver_more();
  Task<void> deliver(std::string person);
  Task<bool> deliver_some(std::string person);
  Saying saying_of(bus::Delivery delivery);
  Task<bool> write_deliveries(std::string person, std::vector<std::string> leases,
                              std::vector<bus::Delivery> deliveries);

  // chats_deadlines.cpp
  Task<bool> end_questions();
  Task<Result<>> end_together(std::vector<Ending> endings, std::vector<std::string> lost);

  WallTime now() const { return round_down(clock_.now().wall); }

  Clock& clock_;  // Borrowed parts outlive this one: whoever makes it declares them before it.
  Random& random_;
  store::Store& store_;
  bus::MessageBus& bus_;
  std::vector<Listener*> listeners_;
  std::function<void()> outgoing_;
  std::unordered_map<std::string, std::vector<Wake*>> readers_;  // who waits for a session's next line
  std::deque<std::string> waiting_people_;                       // have messages, and nobody delivers them yet
  std::unordered_set<std::string> delivering_;                   // those, and the ones being served
  std::unordered_set<std::string> came_meanwhile_;               // got more while being served
  std::size_t deliveries_ = 0;                                   // people being served
  Pauses pauses_;
  Drafts drafts_;
  DueRows deadlines_;
  bool releasing_ = false;
  bool stopping_ = false;
  TaskGroup tasks_;
};

}  // namespace belfry::chat
