#include "belfry/chat/webhooks.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/log.h"
#include "belfry/chat/webhook_tables.h"
#include "belfry/net/signature.h"
#include "belfry/net/url.h"

namespace belfry::chat {
namespace {

std::unexpected<Error> no_webhook(const std::string& person) {
  return fail(Errc::not_found,
              fmt::format("\"{}\" has no webhook; PUT /v1/people/{}/webhook sets one", person, person));
}

bool is_member(const Session& session, const std::string& person) {
  const auto people = session.people();
  return std::find(people.begin(), people.end(), person) != people.end();
}

// A session that has the person in it; others do not exist for them.
Result<std::string> theirs(std::optional<SessionRow> session, const std::string& person, const std::string& what) {
  if (!session || !is_member(session->session, person))
    return fail(Errc::not_found, fmt::format("{}, in a session of \"{}\"", what, person));
  return session->session.id;
}

bool same_way(const Webhook& a, const Webhook& b) {
  return a.url == b.url && a.secret.reveal() == b.secret.reveal() && a.idempotent == b.idempotent &&
         a.timeout == b.timeout;
}

// Empty if there is an agent and no session with it yet.
Result<std::string> choose_session(store::Connection& connection, const Incoming& incoming) {
  if (!incoming.session.empty())
    return theirs(ChatTables::find(connection, incoming.session), incoming.person,
                  fmt::format("session_id: there is no \"{}\"", incoming.session.substr(0, kIdBytesMax)));
  if (!incoming.in_reply_to.empty()) {
    const auto number = ChatTables::session_of(connection, incoming.in_reply_to);
    return theirs(number ? ChatTables::find_by_number(connection, *number) : std::nullopt, incoming.person,
                  fmt::format("in_reply_to: there is no message \"{}\"", incoming.in_reply_to.substr(0, kIdBytesMax)));
  }
  if (incoming.agent.empty()) {
    const auto partners = ChatTables::partners(connection, incoming.person, 2);
    if (partners.size() == 1)
      return ChatTables::find_private(connection, incoming.person, partners.front())->session.id;
    return fail(Errc::invalid_argument,
                fmt::format("agent is missing: \"{}\" has {} private session{}, and it says whom this is for",
                            incoming.person, partners.empty() ? "no" : "more than one", partners.empty() ? "" : "s"));
  }
  const auto known = ChatTables::find_private(connection, incoming.person, incoming.agent);
  return known ? known->session.id : std::string();
}

Result<> check(const Incoming& incoming) {
  if (incoming.id.empty())
    return fail(Errc::invalid_argument, "id is missing: the sender's name for this message, so that a repeat is known");
  if (incoming.id.size() > kInboxIdBytesMax)
    return fail(Errc::invalid_argument,
                fmt::format("id has {} bytes; at most {} are taken", incoming.id.size(), kInboxIdBytesMax));
  return {};
}

}  // namespace

Result<> Webhooks::check_person(const std::string& person) const {
  if (chats_.is_person(person)) return {};
  return fail(Errc::not_found, fmt::format("there is no person \"{}\"; people come with their first session: POST"
                                           " /v1/sessions",
                                           person.substr(0, kIdBytesMax)));
}

Task<Result<Webhook>> Webhooks::set(Webhook webhook) {
  BELFRY_CO_CHECK(check_person(webhook.person));
  BELFRY_CO_CHECK(check(webhook));
  webhook.updated_at = now();
  auto job = [webhook, now_ms = to_ms(now())](store::Connection& connection) mutable -> Result<Webhook> {
    const auto known = WebhookTables::find(connection, webhook.person);
    if (webhook.secret.empty() && !known)
      return fail(Errc::invalid_argument, "secret is missing: what both sides sign with");
    if (webhook.secret.empty()) webhook.secret = known->secret;
    WebhookTables::set(connection, webhook);
    // It may be that the old address was the trouble. Said again, it changes nothing: attempts are not for free.
    if (!known || !same_way(*known, webhook)) WebhookTables::hurry(connection, webhook.person, now_ms);
    return webhook;
  };
  auto stored = co_await store_.write<Webhook>(std::move(job));
  if (stored) {
    outbox_.look();
    log::info("webhook.set", "", {{"person", stored->person}, {"host", net::parse_web_url(stored->url)->server.host}});
  }
  co_return stored;
}

Task<Result<Webhook>> Webhooks::get(std::string person) {
  BELFRY_CO_CHECK(check_person(person));
  auto job = [person](store::Connection& connection) -> Result<Webhook> {
    auto found = WebhookTables::find(connection, person);
    if (!found) return no_webhook(person);
    return std::move(*found);
  };
  co_return co_await store_.read<Webhook>(std::move(job));
}

Task<Result<>> Webhooks::remove(std::string person) {
  BELFRY_CO_CHECK(check_person(person));
  auto job = [person, now_ms = to_ms(now())](store::Connection& connection) -> Result<bool> {
    if (!WebhookTables::remove(connection, person)) return no_webhook(person);
    WebhookTables::hurry(connection, person, now_ms);
    return true;
  };
  const auto removed = co_await store_.write<bool>(std::move(job));
  if (!removed) co_return std::unexpected(removed.error());
  outbox_.look();
  log::info("webhook.removed", "", {{"person", person}});
  co_return Result<>{};
}

Task<Result<OutboxPage>> Webhooks::outbox(OutboxQuery query) {
  BELFRY_CO_CHECK(check_person(query.person));
  auto job = [query](store::Connection& connection) { return WebhookTables::list(connection, query); };
  co_return co_await store_.read<OutboxPage>(std::move(job));
}

// --- what comes back ---

Task<Result<>> Webhooks::verify(std::string person, std::string signature, std::string_view body) {
  auto job = [person](store::Connection& connection) -> Result<Secret> {
    const auto found = WebhookTables::find(connection, person);
    return found ? found->secret : Secret();
  };
  BELFRY_CO_TRY(const Secret secret, co_await store_.read<Secret>(std::move(job)));
  co_return net::verify(secret, signature, body, now());
}

// The session is chosen once: a repeat goes into the same one, whatever has been opened since; unless it names another,
// which cannot be a repeat.
Task<Result<Webhooks::Place>> Webhooks::session_for(Incoming incoming) {
  auto job = [incoming, now_ms = to_ms(now()),
              forget_ms = to_ms(now() - retention_)](store::Connection& connection) -> Result<Place> {
    if (auto known = WebhookTables::inbox_session(connection, incoming.person, incoming.id)) {
      const bool elsewhere = !incoming.session.empty() && incoming.session != *known;
      if (elsewhere) return fail(Errc::key_conflict, "id was used before, in another session");
      return Place{std::move(*known)};
    }
    BELFRY_TRY(std::string session, choose_session(connection, incoming));
    if (!session.empty())
      WebhookTables::note_inbox(connection, incoming.person, incoming.id, session, now_ms, forget_ms);
    return Place{std::move(session), true};
  };
  co_return co_await store_.write<Place>(std::move(job));
}

Task<Result<Posted>> Webhooks::receive(Incoming incoming) {
  BELFRY_CO_CHECK(check(incoming));
  BELFRY_CO_TRY(Place place, co_await session_for(incoming));
  if (place.session.empty()) {
    NewSession wanted{.people = {incoming.person}, .agents = {incoming.agent}};
    BELFRY_CO_CHECK(co_await chats_.open(std::move(wanted)));
    BELFRY_CO_TRY(place, co_await session_for(incoming));
  }
  Post post{.session = place.session,
            .from = incoming.person,
            .text = incoming.text,
            .in_reply_to = incoming.in_reply_to,
            .quick_reply_index = incoming.quick_reply_index,
            .key = "inbox:" + incoming.id};
  const auto posted = co_await chats_.post(std::move(post));
  const bool refused = !posted && !is_passing(posted.error().code);
  if (refused && place.is_new) co_await forget(std::move(incoming));
  co_return posted;
}

// What was refused leaves nothing behind: its id can be used for something better.
Task<void> Webhooks::forget(Incoming incoming) {
  auto job = [incoming](store::Connection& connection) -> Result<bool> {
    WebhookTables::forget_inbox(connection, incoming.person, incoming.id);
    return true;
  };
  const auto forgotten = co_await store_.write<bool>(std::move(job));
  if (!forgotten) log::warn("webhook.not_forgotten", "", {{"person", incoming.person}});
}

}  // namespace belfry::chat
