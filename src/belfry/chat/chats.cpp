#include "belfry/chat/chats.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/log.h"
#include "belfry/base/utf8.h"
#include "belfry/chat/webhook_tables.h"
#include "belfry/when/zone.h"

namespace belfry::chat {
namespace {

// Who waits at most: a conversation with more readers than this has a mistake in it.
constexpr std::size_t kReadersMax = 1'000;

// Stands in the list of those who wait for a session's lines.
struct Reader {
  Reader(std::unordered_map<std::string, std::vector<Wake*>>& all, std::string wanted,
         std::shared_ptr<bus::Departure> leaving)
      : readers(all), session(std::move(wanted)), departure(std::move(leaving)) {
    readers[session].push_back(&wake);
    if (departure) departure->rings(&wake);
  }
  ~Reader() {
    const auto at = readers.find(session);
    std::erase(at->second, &wake);
    if (at->second.empty()) readers.erase(at);
    if (departure) departure->rings(nullptr);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  std::unordered_map<std::string, std::vector<Wake*>>& readers;
  std::string session;
  std::shared_ptr<bus::Departure> departure;
  Wake wake;
};

Result<> check_limit(int limit) {
  if (limit >= 1 && limit <= kLinesPageMax) return {};
  return fail(Errc::invalid_argument, fmt::format("limit is {}; 1 to {} are possible", limit, kLinesPageMax));
}

std::unexpected<Error> no_session(const std::string& id) {
  return fail(Errc::not_found, fmt::format("there is no session \"{}\"", id.substr(0, kIdBytesMax)));
}

// Of names in order.
Result<> check_once(const std::vector<std::string>& names) {
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return fail(Errc::invalid_argument, fmt::format("\"{}\" stands twice; each member is named once", *twice));
}

Result<> check_members(const NewSession& wanted) {
  if (wanted.people.empty()) return fail(Errc::invalid_argument, "a session needs a person in it");
  if (wanted.agents.empty()) return fail(Errc::invalid_argument, "a session needs an agent in it");
  BELFRY_CHECK(check_once(wanted.people));
  BELFRY_CHECK(check_once(wanted.agents));
  if (wanted.kind == SessionKind::private_chat && wanted.people.size() + wanted.agents.size() != 2)
    return fail(Errc::invalid_argument, "a private session has one person and one agent; others are a group");
  if (wanted.people.size() + wanted.agents.size() > kMembersMax)
    return fail(Errc::limit_exceeded, fmt::format("a session has at most {} members", kMembersMax));
  for (const std::string& name : wanted.people) {
    BELFRY_CHECK(bus::check_id("user", name));
    if (name == kBelfry)
      return fail(Errc::invalid_id,
                  fmt::format("\"{}\" is the name that Belfry itself speaks under; a person needs another one", name));
  }
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

// The session that was made under this key, if there is one; a repeat must agree with it in everything.
Result<std::optional<Session>> made_before(store::Connection& connection, const NewSession& wanted) {
  if (wanted.key.empty()) return std::nullopt;
  const auto made = ChatTables::find_by_key(connection, wanted.key);
  if (!made) return std::nullopt;
  const Session& session = made->session;
  const bool same = session.kind == wanted.kind && session.people() == wanted.people &&
                    session.agents() == wanted.agents && session.title == wanted.title &&
                    session.timezone == wanted.timezone;
  if (!same) return fail(Errc::key_conflict, fmt::format("the key was used for another session, {}", session.id));
  return session;
}

}  // namespace

Chats::Chats(asio::io_context& context, Clock& clock, Random& random, store::Store& store, bus::MessageBus& bus,
             Timekeeper& timekeeper)
    : clock_(clock),
      random_(random),
      store_(store),
      bus_(bus),
      pauses_(clock),
      deadlines_(context, clock, timekeeper, "question deadlines", [this] { return end_questions(); }),
      tasks_(context) {
  ChatTables::migrate(store_.connection_before_start());
  WebhookTables::migrate(store_.connection_before_start());
  if (const auto next = ChatTables::next_due(store_.connection_before_start())) deadlines_.note(*next);
}

Chats::~Chats() = default;

void Chats::start() { bus_.attend(kPersonKind, *this); }

void Chats::release_readers() {
  releasing_ = true;
  for (const auto& [session, readers] : readers_)
    for (Wake* const reader : readers) reader->ring();
}

Task<void> Chats::stop() {
  stopping_ = true;
  release_readers();
  pauses_.end();
  co_await deadlines_.stop();
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
  if (said.line.question && said.line.question->answer_by) deadlines_.note(to_ms(*said.line.question->answer_by));
  if (const auto draft = drafts_.said(said.session, said.line))
    for (Listener* const listener : listeners_) listener->drafted(said.session, *draft, true);
  for (Listener* const listener : listeners_) listener->said(said.session, said.line);
  if (said.outgoing && outgoing_) outgoing_();
  const auto waiting = readers_.find(said.session);
  if (waiting == readers_.end()) return;
  for (Wake* const reader : waiting->second) reader->ring();
}

void Chats::tell_coming(const std::string& session) {
  for (Listener* const listener : listeners_) listener->coming_in(session);
}

// --- people and sessions ---

Task<Result<>> Chats::add_person(std::string name) {
  if (is_person(name)) co_return Result<>{};
  auto nothing_else = [](store::Connection&) -> Result<bool> { return true; };
  co_return co_await bus_.add_recipients({std::move(name)}, kPersonKind, std::move(nothing_else));
}

std::vector<std::string> Chats::people() const {
  std::vector<std::string> names;
  for (const bus::RecipientRow& row : bus_.recipients())
    if (row.kind == kPersonKind) names.push_back(row.name);
  return names;
}

// Agents that are there, and no agent among the people.
Result<> Chats::check_known(const NewSession& wanted) const {
  for (const std::string& agent : wanted.agents) {
    const auto known = bus_.recipient(agent);
    if (!known)
      return fail(Errc::unknown_recipient,
                  fmt::format("there is no agent \"{}\"; add it with POST /v1/agents or belfry agents add", agent));
    if (known->kind == kPersonKind)
      return fail(Errc::invalid_argument, fmt::format("\"{}\" is a person, and stands where an agent belongs", agent));
  }
  for (const std::string& person : wanted.people)
    if (const auto known = bus_.recipient(person); known && known->kind != kPersonKind)
      return fail(Errc::already_exists,
                  fmt::format("\"{}\" is an agent; people and agents share one namespace", person));
  return {};
}

Task<Result<Chats::Opened>> Chats::open(NewSession wanted) {
  std::sort(wanted.people.begin(), wanted.people.end());
  std::sort(wanted.agents.begin(), wanted.agents.end());
  BELFRY_CO_CHECK(check(wanted));
  if (!wanted.key.empty()) {  // a repeat succeeds even if an agent is gone by now
    auto look = [wanted](store::Connection& connection) { return made_before(connection, wanted); };
    BELFRY_CO_TRY(std::optional<Session> made, co_await store_.read<std::optional<Session>>(std::move(look)));
    if (made) co_return Opened{std::move(*made), true};
  }
  BELFRY_CO_CHECK(check_known(wanted));

  Session session{.id = new_id(),
                  .kind = wanted.kind,
                  .title = wanted.title,
                  .timezone = wanted.timezone,
                  .created_at = now(),
                  .last_at = now()};
  for (const std::string& person : wanted.people) session.members.push_back({person, true});
  for (const std::string& agent : wanted.agents) session.members.push_back({agent, false});
  auto opened = std::make_shared<Opened>();
  auto create = [session, wanted, opened](store::Connection& connection) -> Result<bool> {
    BELFRY_TRY(std::optional<Session> made, made_before(connection, wanted));  // meanwhile
    opened->repeated = made.has_value();
    opened->session = made ? std::move(*made) : ChatTables::create(connection, session, wanted.key).session;
    return !opened->repeated;
  };
  BELFRY_CO_CHECK(co_await bus_.add_recipients(wanted.people, kPersonKind, std::move(create)));
  if (!opened->repeated)
    log::info("chat.session_opened", "", {{"session", opened->session.id}, {"kind", word(opened->session.kind)}});
  co_return std::move(*opened);
}

Task<Result<Session>> Chats::session(std::string id) {
  auto job = [id](store::Connection& connection) -> Result<Session> {
    auto found = ChatTables::find(connection, id);
    if (!found) return no_session(id);
    return std::move(found->session);
  };
  co_return co_await store_.read<Session>(std::move(job));
}

Task<Result<std::optional<Session>>> Chats::find_private(std::string person, std::string agent) {
  auto look = [person, agent](store::Connection& connection) -> Result<std::optional<Session>> {
    auto found = ChatTables::find_private(connection, person, agent);
    if (!found) return std::nullopt;
    return std::move(found->session);
  };
  co_return co_await store_.read<std::optional<Session>>(std::move(look));
}

Task<Result<Session>> Chats::private_session(std::string person, std::string agent) {
  BELFRY_CO_TRY(std::optional<Session> known, co_await find_private(person, agent));
  if (known) co_return std::move(*known);
  NewSession wanted{.people = {std::move(person)}, .agents = {std::move(agent)}};
  BELFRY_CO_TRY(Opened opened, co_await open(std::move(wanted)));
  co_return std::move(opened.session);
}

Task<Result<ChatTables::SessionPage>> Chats::sessions(std::string member, std::string after, int limit) {
  BELFRY_CO_CHECK(check_limit(limit));
  auto job = [member, after, limit](store::Connection& connection) {
    return ChatTables::list(connection, member, after, limit);
  };
  co_return co_await store_.read<ChatTables::SessionPage>(std::move(job));
}

// --- reading ---

Task<Result<std::vector<Line>>> Chats::look(LinesRequest request) {
  auto job = [request](store::Connection& connection) -> Result<std::vector<Line>> {
    const auto found = ChatTables::find(connection, request.session);
    if (!found) return no_session(request.session);
    if (request.before) return ChatTables::read_before(connection, found->number, *request.before, request.limit);
    return ChatTables::read(connection, found->number, request.after, request.limit);
  };
  co_return co_await store_.read<std::vector<Line>>(std::move(job));
}

Task<Result<std::vector<Line>>> Chats::lines(LinesRequest request) {
  BELFRY_CO_CHECK(check_limit(request.limit));
  if (request.wait < Millis{0} || request.wait > kReceiveWaitMax)
    co_return fail(Errc::invalid_argument,
                   fmt::format("waitMs is {}; 0 to {} are possible", request.wait.count(), kReceiveWaitMax.count()));
  const BootTime deadline = clock_.now().boot + request.wait;
  std::optional<Reader> reader;  // in the list of those who wait: only if there is something to wait for
  while (true) {
    auto lines = co_await look(request);
    const bool enough = !lines || !lines->empty() || request.before;
    const bool left = request.departure && request.departure->left();
    if (enough || left || releasing_ || clock_.now().boot >= deadline) co_return lines;
    if (reader) {
      co_await clock_.sleep_until(deadline, reader->wake);
      continue;
    }
    if (readers_[request.session].size() >= kReadersMax)
      co_return fail(Errc::overloaded,
                     fmt::format("{} wait for lines of this session already; read without waitMs", kReadersMax));
    // And look again: from here on a line rings, but one may have come before.
    reader.emplace(readers_, request.session, request.departure);
  }
}

Task<Result<ChatTables::Found>> Chats::search(SearchRequest request) {
  BELFRY_CO_CHECK(check_limit(request.limit));
  if (is_blank(request.text)) co_return fail(Errc::empty_text, "search is empty; it says what to look for");
  auto job = [request](store::Connection& connection) -> Result<ChatTables::Found> {
    const auto found = ChatTables::find(connection, request.session);
    if (!found) return no_session(request.session);
    return ChatTables::search(connection, found->number, request.text, request.before, request.limit);
  };
  co_return co_await store_.read<ChatTables::Found>(std::move(job));
}

Task<Result<std::vector<Chats::DeadlineOf>>> Chats::deadlines(std::string session, int limit) {
  auto job = [session, limit](store::Connection& connection) -> Result<std::vector<DeadlineOf>> {
    const auto found = ChatTables::find(connection, session);
    if (!found) return no_session(session);
    std::vector<DeadlineOf> all;
    for (QuestionRow& question : ChatTables::deadlines(connection, found->number, limit)) {
      const auto line = ChatTables::find_line(connection, question.id);
      all.push_back({std::move(question), line ? text_of(line->payload) : ""});
    }
    return all;
  };
  co_return co_await store_.read<std::vector<DeadlineOf>>(std::move(job));
}

// --- drafts ---

Task<Result<>> Chats::draft(std::string session, Draft draft) {
  BELFRY_CO_CHECK(Drafts::check(draft));
  BELFRY_CO_TRY(const Session found, co_await this->session(session));
  const std::vector<std::string> agents = found.agents();
  if (std::find(agents.begin(), agents.end(), draft.from) == agents.end())
    co_return fail(Errc::invalid_argument, fmt::format("\"{}\" is no agent of this session", draft.from));
  BELFRY_CO_CHECK(drafts_.put(session, draft, clock_.now().boot));
  for (Listener* const listener : listeners_) listener->drafted(session, draft, draft.text.empty());
  co_return Result<>{};
}

void Chats::end_old_drafts() {
  for (const auto& [session, draft] : drafts_.forget_old(clock_.now().boot))
    for (Listener* const listener : listeners_) listener->drafted(session, draft, true);
}

}  // namespace belfry::chat
