#include "belfry/server/hub.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/limits.h"
#include "belfry/base/log.h"
#include "belfry/base/utf8.h"
#include "belfry/server/frames.h"

namespace belfry::server {
namespace {

constexpr int kCatchUpLines = 200;
// Of a client that may not read as fast as it asks: a page of lines may have 4 MiB, and thousands may come at once.
constexpr int kFirstLines = 10;
// Of a run, read ahead of a client that may not read.
constexpr std::size_t kCatchUpEventsBytes = 64u << 10;
// Chats that one panel looks at: as many as its list shows.
constexpr std::size_t kSubscriptionsMax = 500;
// Pages that are in memory at once, however many catch up.
constexpr int kReadingMax = 4;
// Frames that are kept in mind, at least, until those are looked for that nobody waits for any more.
constexpr std::size_t kFramesKept = 1'000;
// Sessions whose people are kept in mind.
constexpr std::size_t kPeopleKept = 10'000;
// The first frame comes with the connection.
constexpr Nanos kHelloMax = std::chrono::seconds{10};
// Close codes of our own: 4000 and up are free for that.
constexpr int kBadFrame = 4400;
constexpr int kUnauthorized = 4401;

// Also for a session that is somebody else's.
Error no_session(const std::string& session) {
  return {Errc::not_found, fmt::format("there is no session \"{}\"", session.substr(0, kIdBytesMax))};
}

}  // namespace

Hub::Hub(asio::io_context& context, Clock& clock, bus::MessageBus& bus, chat::Chats& chats, run::Runs& runs,
         const Guard& guard, TaskGroup& tasks, std::string timezone)
    : context_(context),
      clock_(clock),
      bus_(bus),
      chats_(chats),
      runs_(runs),
      guard_(guard),
      tasks_(tasks),
      timezone_(std::move(timezone)) {
  chats_.listen(*this);
  runs_.listen(*this);
}

Hub::~Hub() {
  chats_.unlisten(*this);
  runs_.unlisten(*this);
}

void Hub::add_to(Router& router) {
  router.add_socket("/v1/ws", [this](Request request, Socket& socket) { return serve(std::move(request), socket); });
}

void Hub::send(Client& client, const std::string& text) {
  if (client.socket) client.socket->send(text_frame(text));
}

class Hub::Turn {
 public:
  explicit Turn(Hub& hub) : hub_(hub) {}
  ~Turn() { hub_.end_turn(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Hub& hub_;
};

// --- one client ---

Task<void> Hub::serve(Request, Socket& socket) {
  auto client = std::make_shared<Client>();
  client->socket = &socket;
  strangers_[client] = clock_.now().boot + kHelloMax;
  struct Leave {
    Hub& hub;
    const std::shared_ptr<Client>& client;
    ~Leave() { hub.leave(client); }
  } leave{*this, client};
  const bool known = co_await greet(client);
  strangers_.erase(client);
  if (!known) co_return;
  while (auto text = co_await socket.receive()) {
    // What somebody asks for who does not read the answers has time.
    if (!socket.has_room(0)) co_await socket.drained();
    auto frame = wire::read_client_frame(*text);
    if (!frame) {
      send(*client, wire::socket_error(frame.error(), "", ""));
      continue;
    }
    co_await obey(client, std::move(*frame));
  }
}

// The first frame says who is there. One without the right token hears nothing of anybody.
Task<bool> Hub::greet(std::shared_ptr<Client> client) {
  Socket& socket = *client->socket;
  const auto text = co_await socket.receive();
  if (!text) co_return false;
  const auto refuse = [&socket](int code, const std::string& why) {
    socket.close(code, why);
    return false;
  };
  auto frame = wire::read_client_frame(*text);
  if (!frame) co_return refuse(kBadFrame, frame.error().detail);
  const auto* const hello = std::get_if<wire::Hello>(&*frame);
  if (!hello) co_return refuse(kBadFrame, "the first frame is a hello");
  if (const auto allowed = guard_.check_token(hello->token); !allowed)
    co_return refuse(kUnauthorized, allowed.error().detail);
  if (!chats_.is_person(hello->person))
    co_return refuse(kBadFrame, fmt::format("there is no person \"{}\"", hello->person.substr(0, kIdBytesMax)));
  socket.proved();
  client->person = hello->person;
  clients_.insert(client);
  by_person_[client->person].insert(client);
  send(*client, wire::welcome(BELFRY_VERSION, now(), client->person, timezone_));
  if (stopping_) send(*client, wire::stopping());
  for (const wire::Hello::Known& session : hello->sessions) subscribe(client, session);
  co_return true;
}

Task<void> Hub::obey(std::shared_ptr<Client> client, wire::ClientFrame frame) {
  if (auto* const line = std::get_if<wire::SendLine>(&frame)) {
    co_await post(client, std::move(line->post));
  } else if (const auto* const wanted = std::get_if<wire::Subscribe>(&frame)) {
    subscribe(client, wanted->known);
  } else if (const auto* const unwanted = std::get_if<wire::Unsubscribe>(&frame)) {
    unsubscribe(client, unwanted->session);
  } else if (auto* const unwelcome = std::get_if<wire::Stop>(&frame)) {
    co_await stop(client, std::move(*unwelcome));
  } else if (auto* const watched = std::get_if<wire::WatchRun>(&frame)) {
    co_await watch(client, std::move(*watched));
  } else if (std::holds_alternative<wire::Ping>(frame)) {
    send(*client, wire::pong(now()));
  } else {
    send(*client, wire::socket_error({Errc::invalid_argument, "hello was said already"}, "", ""));
  }
}

// One after the other, so that what somebody says keeps its order.
Task<void> Hub::post(std::shared_ptr<Client> client, chat::Post post) {
  post.from = client->person;
  const auto posted = co_await chats_.post(post);
  send(*client, posted ? wire::sent(post, *posted) : wire::socket_error(posted.error(), post.session, post.key));
}

// Of those in the chat anybody may say it; others are told that there is no such chat.
Task<void> Hub::stop(std::shared_ptr<Client> client, wire::Stop wanted) {
  const auto found = co_await chats_.session(wanted.session);
  const auto refuse = [&](const Error& why) { send(*client, wire::socket_error(why, wanted.session, "")); };
  if (!found) co_return refuse(found.error());
  if (!found->has(client->person)) co_return refuse(no_session(wanted.session));
  const std::vector<std::string> agents = found->agents();
  if (std::find(agents.begin(), agents.end(), wanted.agent) == agents.end())
    co_return refuse({Errc::invalid_argument,
                      fmt::format("\"{}\" is no agent of this session", first_characters(wanted.agent, kIdBytesMax))});
  if (stopper_) stopper_(std::move(wanted.session), std::move(wanted.agent));
}

void Hub::leave(const std::shared_ptr<Client>& client) {
  client->socket = nullptr;
  while (!client->sessions.empty()) unsubscribe(client, std::string(client->sessions.begin()->first));
  while (!client->runs.empty()) unwatch(client, std::string(client->runs.begin()->first));
  if (const auto mine = by_person_.find(client->person); mine != by_person_.end()) {
    mine->second.erase(client);
    if (mine->second.empty()) by_person_.erase(mine);
  }
  clients_.erase(client);
  strangers_.erase(client);
}

// --- subscriptions ---

void Hub::subscribe(const std::shared_ptr<Client>& client, const wire::Hello::Known& known) {
  if (client->sessions.size() >= kSubscriptionsMax && !client->sessions.contains(known.session))
    return send(*client, wire::socket_error({Errc::limit_exceeded,
                                             fmt::format("a panel looks at {} chats at most", kSubscriptionsMax)},
                                            known.session, ""));
  const auto [entry, is_new] = client->sessions.try_emplace(known.session);
  const bool catching_up = !is_new && !entry->second.live;
  entry->second.sent = known.after;
  entry->second.live = false;
  by_session_[known.session].insert(client);
  if (!catching_up) tasks_.spawn("catch up", catch_up(client, known.session));
}

void Hub::unsubscribe(const std::shared_ptr<Client>& client, const std::string& session) {
  client->sessions.erase(session);
  const auto here = by_session_.find(session);
  if (here == by_session_.end()) return;
  here->second.erase(client);
  if (here->second.empty()) by_session_.erase(here);
}

// Stale after every co_await: the client may have left, or changed its mind.
Hub::Subscription* Hub::find(const std::shared_ptr<Client>& client, const std::string& session) {
  const auto found = client->sessions.find(session);
  return client->socket && found != client->sessions.end() ? &found->second : nullptr;
}

Task<void> Hub::catch_up(std::shared_ptr<Client> client, std::string session) {
  // A client of another person hears nothing of this chat.
  const auto found = co_await chats_.session(session);
  const bool member = found && found->has(client->person);
  if (!member) {
    send(*client, wire::socket_error(found ? no_session(session) : found.error(), session, ""));
    unsubscribe(client, session);
    co_return;
  }
  int limit = kFirstLines;
  while (find(client, session)) {
    co_await client->socket->drained();
    co_await wait_for_turn();
    const Turn turn(*this);
    const auto more = co_await next_lines(client, session, limit);
    if (!more) co_return;
    limit = *more;
  }
}

// Many who catch up at once must not have all their pages in memory at once.
Task<void> Hub::wait_for_turn() {
  if (reading_ < kReadingMax) {
    ++reading_;
    co_return;
  }
  co_await suspend<int>([this](Resume<int> resume) { turns_.push_back(std::move(resume)); });
}

// Whoever waits has the turn from here on.
void Hub::end_turn() {
  if (turns_.empty()) {
    --reading_;
    return;
  }
  asio::post(context_, [next = std::move(turns_.front())]() mutable { next(0); });
  turns_.pop_front();
}

// A question says what became of it, so what it looks like changes.
SharedFrame Hub::frame_of(const std::string& session, const chat::Line& line) {
  if (line.question) return text_frame(wire::message(session, line));
  const std::string name = fmt::format("{} {}", session, line.seq);
  if (const auto known = frames_.find(name); known != frames_.end())
    if (SharedFrame frame = known->second.lock()) return frame;
  if (frames_.size() >= tidy_frames_at_) {
    std::erase_if(frames_, [](const auto& each) { return each.second.expired(); });
    tidy_frames_at_ = std::max(kFramesKept, 2 * frames_.size());
  }
  SharedFrame frame = text_frame(wire::message(session, line));
  frames_[name] = frame;
  return frame;
}

// Sends as many lines as there is room for; what was read beyond them is let go, and read again when there is. Returns how
// many are worth reading then, or nothing if it is over.
Task<std::optional<int>> Hub::next_lines(std::shared_ptr<Client> client, std::string session, int limit) {
  const Subscription* const before = find(client, session);
  if (!before) co_return std::nullopt;
  const std::int64_t after = before->sent;
  const auto lines = co_await chats_.lines({.session = session, .after = after, .limit = limit});
  Subscription* const here = find(client, session);
  if (!here) co_return std::nullopt;
  if (!lines) {
    send(*client, wire::socket_error(lines.error(), session, ""));
    unsubscribe(client, session);
    co_return std::nullopt;
  }
  if (here->sent != after) co_return limit;  // it asked for another place meanwhile
  int taken = 0;
  for (const chat::Line& line : *lines) {
    SharedFrame frame = frame_of(session, line);
    if (!client->socket->has_room(frame->bytes.size())) co_return std::clamp(2 * taken, 1, kCatchUpLines);
    client->socket->send(std::move(frame));
    here->sent = line.seq;
    ++taken;
  }
  if (!lines->empty() || here->heard > here->sent) co_return std::min(4 * limit, kCatchUpLines);
  here->live = true;
  send(*client, wire::caught_up(session, here->sent));
  for (const chat::Draft& draft : chats_.drafts(session)) send(*client, wire::draft(session, draft, false));
  co_return std::nullopt;
}

// --- what happens ---

void Hub::said(const std::string& session, const chat::Line& line) {
  if (clients_.empty()) return;
  if (const auto here = by_session_.find(session); here != by_session_.end()) {
    const SharedFrame frame = frame_of(session, line);
    const Clients clients = here->second;  // one that is cut off leaves the list
    for (const std::shared_ptr<Client>& client : clients) {
      Subscription* const subscription = find(client, session);
      if (!subscription) continue;
      const bool next = subscription->live && line.seq == subscription->sent + 1;
      if (!next || !client->socket->has_room(frame->bytes.size())) {
        subscription->heard = std::max(subscription->heard, line.seq);
        const bool missed = subscription->live && line.seq > subscription->sent;
        if (missed) subscribe(client, {.session = session, .after = subscription->sent});
        continue;
      }
      subscription->sent = line.seq;
      client->socket->send(frame);
    }
  }
  const bool changes_what_comes = line.due_at || !line.closes.empty() || (line.question && line.question->answer_by);
  if (changes_what_comes) coming_in(session);
  if (const auto known = people_.find(session); known != people_.end())
    return tell_others(session, known->second, line);
  tasks_.spawn("people of a session", find_people(session, line));
}

Task<void> Hub::find_people(std::string session, chat::Line line) {
  const auto found = co_await chats_.session(session);
  if (!found) co_return;
  if (people_.size() >= kPeopleKept) people_.clear();
  people_[session] = found->people();
  tell_others(session, found->people(), line);
}

// Panels of these people that do not look at the session right now.
void Hub::tell_others(const std::string& session, const People& people, const chat::Line& line) {
  SharedFrame frame;
  for (const std::string& person : people) {
    const auto theirs = by_person_.find(person);
    if (theirs == by_person_.end()) continue;
    const Clients clients = theirs->second;
    for (const std::shared_ptr<Client>& client : clients) {
      if (!client->socket || client->sessions.contains(session)) continue;
      if (!frame) frame = text_frame(wire::activity(session, line));
      client->socket->send(frame);
    }
  }
}

// Of the end of one everybody hears who may have seen its beginning.
void Hub::drafted(const std::string& session, const chat::Draft& draft, bool ended) {
  if (!ended) return tell_session(session, wire::draft(session, draft, false));
  const auto here = by_session_.find(session);
  if (here == by_session_.end()) return;
  const SharedFrame frame = text_frame(wire::draft(session, draft, true));
  const Clients clients = here->second;
  for (const std::shared_ptr<Client>& client : clients)
    if (client->socket) client->socket->send(frame);
}

// Those who look at it right now, and have all of its lines. One that does not read catches up later: then it is told how
// things stand.
void Hub::tell_session(const std::string& session, const std::string& text) {
  const auto here = by_session_.find(session);
  if (here == by_session_.end()) return;
  const SharedFrame frame = text_frame(text);
  const Clients clients = here->second;
  for (const std::shared_ptr<Client>& client : clients) {
    const Subscription* const subscription = find(client, session);
    if (!subscription || !subscription->live) continue;
    if (client->socket->has_room(frame->bytes.size())) {
      client->socket->send(frame);
    } else {
      subscribe(client, {.session = session, .after = subscription->sent});
    }
  }
}

// --- runs ---

void Hub::changed(const run::Run& run) {
  if (by_session_.contains(run.owner.session)) tell_session(run.owner.session, wire::run_changed(run));
}

void Hub::progressed(const run::Run& run, int step, const std::string& progress) {
  if (by_session_.contains(run.owner.session)) tell_session(run.owner.session, wire::run_progress(run, step, progress));
}

// Those that are watched one by one are sent in order: one that would leave a gap is read again from the disk, and so is
// one that there is no room for.
void Hub::happened(const run::Event& event) {
  const auto watchers = by_run_.find(event.run_id);
  if (watchers == by_run_.end()) return;
  const SharedFrame frame = text_frame(wire::run_event(event));
  const Clients clients = watchers->second;
  for (const std::shared_ptr<Client>& client : clients) {
    Subscription* const watching = find_run(client, event.run_id);
    if (!watching) continue;
    const bool next = watching->live && event.seq == watching->sent + 1;
    if (next && client->socket->has_room(frame->bytes.size())) {
      watching->sent = event.seq;
      client->socket->send(frame);
      if (event.is_last()) unwatch(client, event.run_id);
      continue;
    }
    watching->heard = std::max(watching->heard, event.seq);
    if (!watching->live || event.seq <= watching->sent) continue;
    watching->live = false;
    tasks_.spawn("follow a run", follow(client, event.run_id));
  }
}

// Of a chat's runs those in it may hear; of the others anybody who may talk to this server at all.
Task<bool> Hub::may_see(const std::shared_ptr<Client>& client, const run::Run& run) {
  if (run.owner.session.empty()) co_return true;
  const auto session = co_await chats_.session(run.owner.session);
  co_return session && session->has(client->person);
}

void Hub::unwatch(const std::shared_ptr<Client>& client, const std::string& run) {
  client->runs.erase(run);
  const auto watchers = by_run_.find(run);
  if (watchers == by_run_.end()) return;
  watchers->second.erase(client);
  if (watchers->second.empty()) by_run_.erase(watchers);
}

Task<void> Hub::watch(std::shared_ptr<Client> client, wire::WatchRun wanted) {
  const auto found = co_await runs_.get(wanted.run, run::Detail::outline);
  const bool allowed = found && co_await may_see(client, *found);
  if (!allowed) {
    send(*client, wire::socket_error({Errc::not_found,
                                      fmt::format("there is no run \"{}\"", first_characters(wanted.run, kIdBytesMax))},
                                     "", ""));
    co_return;
  }
  if (client->runs.size() >= kSubscriptionsMax && !client->runs.contains(wanted.run)) {
    send(*client,
         wire::socket_error({Errc::limit_exceeded, fmt::format("a panel watches {} runs at most", kSubscriptionsMax)},
                            "", ""));
    co_return;
  }
  const auto [entry, is_new] = client->runs.try_emplace(wanted.run);
  const bool catching_up = !is_new && !entry->second.live;
  entry->second.sent = wanted.after;
  entry->second.live = false;
  by_run_[wanted.run].insert(client);
  if (!catching_up) tasks_.spawn("follow a run", follow(client, wanted.run));
}

Hub::Subscription* Hub::find_run(const std::shared_ptr<Client>& client, const std::string& run) {
  const auto found = client->runs.find(run);
  return client->socket && found != client->runs.end() ? &found->second : nullptr;
}

Task<void> Hub::follow(std::shared_ptr<Client> client, std::string run) {
  while (find_run(client, run)) {
    co_await client->socket->drained();
    co_await wait_for_turn();
    const Turn turn(*this);
    const bool more = co_await next_events(client, run);
    if (!more) co_return;
  }
}

// As next_lines().
Task<bool> Hub::next_events(std::shared_ptr<Client> client, std::string run) {
  const Subscription* const before = find_run(client, run);
  if (!before) co_return false;
  const std::int64_t after = before->sent;
  const auto events = co_await runs_.events({.id = run, .after = after, .bytes_max = kCatchUpEventsBytes});
  Subscription* const here = find_run(client, run);
  if (!here) co_return false;
  if (!events) {
    unwatch(client, run);
    send(*client, wire::socket_error(events.error(), "", ""));
    co_return false;
  }
  if (here->sent != after) co_return true;
  for (const run::Event& event : *events) {
    SharedFrame frame = text_frame(wire::run_event(event));
    if (!client->socket->has_room(frame->bytes.size())) co_return true;
    client->socket->send(std::move(frame));
    here->sent = event.seq;
    if (!event.is_last()) continue;
    unwatch(client, run);
    co_return false;
  }
  here->live = events->empty() && here->heard <= here->sent;
  co_return !here->live;
}

void Hub::coming_in(const std::string& session) {
  if (!by_session_.contains(session)) return;
  coming_.insert(session);
  if (std::exchange(flush_posted_, true)) return;
  asio::post(context_, [this] { flush_coming(); });
}

void Hub::coming_for(const std::string& person) {
  const auto theirs = by_person_.find(person);
  if (theirs == by_person_.end()) return;
  for (const std::shared_ptr<Client>& client : theirs->second)
    for (const auto& [session, subscription] : client->sessions) coming_in(session);
}

void Hub::flush_coming() {
  flush_posted_ = false;
  for (const std::string& session : std::exchange(coming_, {})) {
    const auto here = by_session_.find(session);
    if (here == by_session_.end()) continue;
    const std::string text = wire::coming_changed(session);
    const Clients clients = here->second;
    for (const std::shared_ptr<Client>& client : clients) send(*client, text);
  }
}

void Hub::tick() {
  chats_.end_old_drafts();
  const auto strangers = strangers_;  // one that is closed leaves the list
  for (const auto& [client, deadline] : strangers)
    if (clock_.now().boot >= deadline) client->socket->close(kBadFrame, "no hello came");
  if (clients_.empty()) return;
  const bus::Counts all = bus_.totals().live;
  const Clients clients = clients_;
  for (const std::shared_ptr<Client>& client : clients) {
    std::string text = wire::counts(all, bus_.delayed_count(client->person));
    if (text == client->counts || !client->socket || !client->socket->has_room(text.size())) continue;
    send(*client, text);
    client->counts = std::move(text);
  }
}

void Hub::stopping() {
  stopping_ = true;
  const Clients clients = clients_;
  for (const std::shared_ptr<Client>& client : clients) send(*client, wire::stopping());
}

}  // namespace belfry::server
