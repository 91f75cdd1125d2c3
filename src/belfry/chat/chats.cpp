#include "belfry/chat/chats.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/log.h"
#include "belfry/when/zone.h"

namespace belfry::chat {
namespace {

// Who is waited for at most: a conversation with more readers than this has a mistake in it.
constexpr std::size_t kReadersMax = 1'000;

std::unexpected<Error> no_session(const std::string& id) {
  return fail(Errc::not_found, fmt::format("there is no session \"{}\"", id.substr(0, kIdBytesMax)));
}

Result<> check_members(const NewSession& wanted) {
  if (wanted.people.empty()) return fail(Errc::invalid_argument, "a session needs a person in it");
  if (wanted.agents.empty()) return fail(Errc::invalid_argument, "a session needs an agent in it");
  if (wanted.kind == SessionKind::private_chat && wanted.people.size() + wanted.agents.size() != 2)
    return fail(Errc::invalid_argument, "a private session has one person and one agent; others are a group");
  if (wanted.people.size() + wanted.agents.size() > kMembersMax)
    return fail(Errc::limit_exceeded, fmt::format("a session has at most {} members", kMembersMax));
  for (const std::string& name : wanted.people) BELFRY_CHECK(bus::check_id("user", name));
  for (const std::string& name : wanted.agents) {
    BELFRY_CHECK(bus::check_id("agent", name));
    if (std::find(wanted.people.begin(), wanted.people.end(), name) != wanted.people.end())
      return fail(Errc::invalid_argument,
                  fmt::format("\"{}\" cannot be a person and an agent: they share one namespace", name));
  }
  return {};
}

Result<> check(const NewSession& wanted) {
  BELFRY_CHECK(check_members(wanted));
  if (wanted.title.size() > kTitleBytesMax)
    return fail(Errc::invalid_argument, fmt::format("title is longer than {} bytes", kTitleBytesMax));
  if (wanted.key.size() > kKeyBytesMax)
    return fail(Errc::invalid_argument, fmt::format("key is longer than {} bytes", kKeyBytesMax));
  if (!wanted.timezone.empty())
    if (const auto zone = when::Zone::named(wanted.timezone); !zone) return std::unexpected(zone.error());
  return {};
}

// What a repeat under the same key must agree on.
bool is_same(const Session& made, const NewSession& wanted) {
  std::vector<std::string> people = wanted.people;
  std::vector<std::string> agents = wanted.agents;
  std::sort(people.begin(), people.end());
  std::sort(agents.begin(), agents.end());
  return made.kind == wanted.kind && made.people() == people && made.agents() == agents;
}

}  // namespace

Chats::Chats(asio::io_context& context, Clock& clock, Random& random, store::Store& store, bus::MessageBus& bus,
             Timekeeper& timekeeper)
    : clock_(clock), random_(random), store_(store), bus_(bus), timekeeper_(timekeeper), tasks_(context) {
  ChatTables::migrate(store_.connection_before_start());
  next_deadline_ms_ = ChatTables::next_due(store_.connection_before_start());
  timekeeper_.add(*this);
}

Chats::~Chats() = default;

void Chats::start() {
  bus_.attend(kPersonKind, *this);
  timekeeper_.look_again();
}

Task<void> Chats::stop() {
  stopping_ = true;
  for (const auto& [session, readers] : readers_)
    for (Wake* const reader : readers) reader->ring();
  for (Wake* const pause : pauses_) pause->ring();
  co_await tasks_.join();
}

// Sixty bits are enough that two ids never meet; they begin with a letter, so that nobody takes one for a number.
std::string Chats::new_id() {
  static constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";
  std::uint64_t bits = random_.next();
  std::string id = "c";
  for (int i = 0; i < 12; ++i, bits >>= 5) id += kLetters[bits & 31];
  return id;
}

void Chats::tell(const Said& said) {
  if (said.line.question && said.line.question->answer_by) note_deadline(to_ms(*said.line.question->answer_by));
  for (Listener* const listener : listeners_) listener->said(said.session, said.line);
  const auto waiting = readers_.find(said.session);
  if (waiting == readers_.end()) return;
  for (Wake* const reader : waiting->second) reader->ring();
}

// --- people and sessions ---

Task<Result<>> Chats::add_person(std::string name) {
  BELFRY_CO_CHECK(bus::check_id("user", name));
  auto known = bus_.recipient(name);
  if (!known) {
    const auto added = co_await bus_.add_recipient(name, kPersonKind);
    if (!added && added.error().code != Errc::already_exists) co_return std::unexpected(added.error());
    known = bus_.recipient(name);
    if (!known) co_return std::unexpected(known.error());
  }
  if (known->kind != kPersonKind)
    co_return fail(Errc::already_exists,
                   fmt::format("\"{}\" is an agent; people and agents share one namespace", name));
  co_return Result<>{};
}

std::vector<std::string> Chats::people() const {
  std::vector<std::string> names;
  for (const bus::RecipientRow& row : bus_.recipients())
    if (row.kind == kPersonKind) names.push_back(row.name);
  return names;
}

Task<Result<Chats::Opened>> Chats::open(NewSession wanted) {
  BELFRY_CO_CHECK(check(wanted));
  for (const std::string& agent : wanted.agents) {
    const auto known = bus_.recipient(agent);
    if (!known)
      co_return fail(Errc::unknown_recipient, fmt::format("there is no agent \"{}\"; add it with POST /v1/agents or"
                                                          " belfry agents add",
                                                          agent));
    if (known->kind == kPersonKind)
      co_return fail(Errc::invalid_argument,
                     fmt::format("\"{}\" is a person, and stands where an agent belongs", agent));
  }
  for (const std::string& person : wanted.people) BELFRY_CO_CHECK(co_await add_person(person));

  Session session{.id = new_id(),
                  .kind = wanted.kind,
                  .title = wanted.title,
                  .timezone = wanted.timezone,
                  .created_at = now(),
                  .last_at = now()};
  for (const std::string& person : wanted.people) session.members.push_back({person, true});
  for (const std::string& agent : wanted.agents) session.members.push_back({agent, false});
  auto job = [session, wanted](store::Connection& connection) -> Result<Opened> {
    if (!wanted.key.empty())
      if (const auto made = ChatTables::find_by_key(connection, wanted.key)) {
        if (!is_same(made->session, wanted))
          return fail(Errc::key_conflict, fmt::format("the key was used for another session, {}", made->session.id));
        return Opened{made->session, true};
      }
    return Opened{ChatTables::create(connection, session, wanted.key).session, false};
  };
  BELFRY_CO_TRY(Opened opened, co_await store_.write<Opened>(std::move(job)));
  if (!opened.repeated)
    log::info("chat.session_opened", "", {{"session", opened.session.id}, {"kind", word(opened.session.kind)}});
  co_return opened;
}

Task<Result<Session>> Chats::session(std::string id) {
  auto job = [id](store::Connection& connection) -> Result<Session> {
    auto found = ChatTables::find(connection, id);
    if (!found) return no_session(id);
    return std::move(found->session);
  };
  co_return co_await store_.read<Session>(std::move(job));
}

Task<Result<ChatTables::SessionPage>> Chats::sessions(std::string member, std::string after, int limit) {
  auto job = [member, after, limit](store::Connection& connection) -> Result<ChatTables::SessionPage> {
    return ChatTables::list(connection, member, after, std::clamp(limit, 1, kLinesPageMax));
  };
  co_return co_await store_.read<ChatTables::SessionPage>(std::move(job));
}

// --- reading ---

Task<Result<std::vector<Line>>> Chats::lines(LinesRequest request) {
  if (request.limit < 1 || request.limit > kLinesPageMax)
    co_return fail(Errc::invalid_argument,
                   fmt::format("limit is {}; 1 to {} are possible", request.limit, kLinesPageMax));
  if (request.wait < Millis{0} || request.wait > kReceiveWaitMax)
    co_return fail(Errc::invalid_argument,
                   fmt::format("waitMs is {}; 0 to {} are possible", request.wait.count(), kReceiveWaitMax.count()));
  const BootTime deadline = clock_.now().boot + request.wait;
  Wake wake;
  // In the list before the first look: a line that comes while we read rings already.
  std::vector<Wake*>& readers = readers_[request.session];
  if (readers.size() >= kReadersMax) co_return fail(Errc::overloaded, "too many wait for lines of this session");
  readers.push_back(&wake);
  struct Leave {
    Chats& chats;
    const std::string& session;
    Wake& wake;
    ~Leave() {
      const auto at = chats.readers_.find(session);
      std::erase(at->second, &wake);
      if (at->second.empty()) chats.readers_.erase(at);
    }
  } leave{*this, request.session, wake};
  while (true) {
    auto job = [request](store::Connection& connection) -> Result<std::vector<Line>> {
      const auto found = ChatTables::find(connection, request.session);
      if (!found) return no_session(request.session);
      if (request.before) return ChatTables::read_before(connection, found->number, *request.before, request.limit);
      return ChatTables::read(connection, found->number, request.after, request.limit);
    };
    auto lines = co_await store_.read<std::vector<Line>>(std::move(job));
    const bool enough = !lines || !lines->empty() || request.before;
    if (enough || stopping_ || clock_.now().boot >= deadline) co_return lines;
    co_await clock_.sleep_until(deadline, wake);
  }
}

}  // namespace belfry::chat
