#include "belfry/chat/outbox.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/assert.h"
#include "belfry/base/log.h"
#include "belfry/chat/private_message_tables.h"
#include "belfry/chat/private_messages.h"
#include "belfry/chat/webhook_tables.h"
#include "belfry/net/signature.h"

namespace belfry::chat {
namespace {

// Requests at the same time: each holds a body in memory, and each is to another person.
constexpr int kSendsAtOnce = 32;
constexpr Millis kTryAgain{1'000};

bool is_delivered(const net::WebAnswer& answer) {
  return answer.fate == net::Fate::answered && answer.status >= 200 && answer.status < 300;
}

// The receiver said that this request will never do; 429 and 5xx say that another time may.
bool is_refused(const net::WebAnswer& answer) {
  return answer.fate == net::Fate::answered && answer.status != 429 && answer.status < 500;
}

std::string error_of(const net::WebAnswer& answer) {
  if (answer.fate != net::Fate::answered) return answer.what;
  return fmt::format("the receiver answered {}", answer.status);
}

net::WebRequest request_for(const OutboxRow& row, const Webhook& webhook, net::WebUrl url, WallTime now) {
  return {.url = std::move(url),
          .headers = {{"Content-Type", "application/json"},
                      {"Idempotency-Key", row.id},
                      {net::kSignatureHeader, net::sign(webhook.secret, now, row.body)}},
          .body = row.body,
          .timeout = webhook.timeout};
}

}  // namespace

Verdict judge(const OutboxRow& row, const net::WebAnswer& answer, bool idempotent, WallTime now) {
  if (is_delivered(answer)) return {.state = OutboxState::sent};
  Verdict verdict{.unclear = row.unclear || answer.fate == net::Fate::unanswered};
  verdict.reason = "outcome_unknown";
  if (verdict.unclear && !idempotent) return verdict;
  if (!verdict.unclear) verdict.reason = is_refused(answer) ? "refused" : "channel_failed";
  if (is_refused(answer) || row.attempts >= kSendAttemptsMax) return verdict;
  const Millis pause = kSendPauses[std::max(row.attempts, 1) - 1];
  verdict.again_at = now + std::max(pause, answer.retry_after.value_or(Millis{0}));
  if (verdict.again_at > wall_from_ms(row.first_ms.value_or(to_ms(now))) + kSendWindow) return verdict;
  verdict.state = OutboxState::waiting;
  return verdict;
}

Outbox::Outbox(asio::io_context& context, Clock& clock, store::Store& store, Chats& chats, Timekeeper& timekeeper,
               net::WebClient& client, Millis retention)
    : clock_(clock),
      store_(store),
      chats_(chats),
      client_(client),
      retention_(retention),
      pauses_(clock),
      due_(context, clock, timekeeper, "outbox", [this] { return send_due(); }),
      tasks_(context) {
  chats_.on_outgoing([this] { look(); });
  // Those that the last life was sending had no answer, whatever came of them.
  store::Connection& connection = store_.connection_before_start();
  PrivateMessageTables::migrate(connection);
  const net::WebAnswer none{.fate = net::Fate::unanswered, .what = "the server ended while it waited for the answer"};
  std::vector<OutboxRow> left = WebhookTables::sending(connection);
  if (!left.empty()) {
    News news;
    connection.run("BEGIN IMMEDIATE");
    for (OutboxRow& row : left) settle(connection, std::move(row), none, now(), news);
    connection.run("COMMIT");
    tell(news);
  }
  if (const auto next = WebhookTables::next_due(connection)) due_.note(*next);
}

Task<void> Outbox::stop(BootTime deadline) {
  close();
  stopping_ = true;
  co_await due_.stop();
  while (under_way_ > 0 && clock_.now().boot < deadline) co_await clock_.sleep_until(deadline, idle_);
  client_.abandon();
  pauses_.end();
  co_await tasks_.join();
}

Task<bool> Outbox::send_due() {
  while (true) {
    due_.begin_reading();
    const int room = kSendsAtOnce - static_cast<int>(under_way_);
    if (room <= 0 || closed_) break;  // whoever ends looks again
    auto job = [room, now = now(),
                forget_ms = to_ms(now() - retention_)](store::Connection& connection) -> Result<News> {
      WebhookTables::drop_old(connection, forget_ms);
      return claim_some(connection, room, now);
    };
    auto news = co_await store_.write<News>(std::move(job), kSendsAtOnce * 4);
    if (!news) {
      log::warn("outbox.claim_failed", "messages for webhooks could not be claimed; tried again soon",
                {{"what", news.error().detail}});
      co_return false;
    }
    tell(*news);
    for (Claim& claim : news->claims) {
      ++under_way_;
      tasks_.spawn("send to a webhook", send(std::move(claim)));
    }
    if (!news->next_ms) break;
    due_.note(*news->next_ms);
    if (*news->next_ms > to_ms(now())) break;
  }
  co_return true;
}

// Takes what is due, and ends what is not to be sent any more.
Outbox::News Outbox::claim_some(store::Connection& connection, int room, WallTime now) {
  News news;
  for (OutboxRow& row : WebhookTables::due(connection, to_ms(now), room)) {
    auto webhook = WebhookTables::find(connection, row.person);
    row.state = OutboxState::failed;
    row.next_ms.reset();
    if (row.unclear && !(webhook && webhook->idempotent)) {
      row.reason = "outcome_unknown";
      end(connection, std::move(row), now, news);
    } else if (row.expires_ms && to_ms(now) > *row.expires_ms) {
      row.reason = row.unclear ? "outcome_unknown" : "expired";
      if (row.last_error.empty()) row.last_error = "it would have been too late";
      end(connection, std::move(row), now, news);
    } else if (!webhook) {
      back_to_the_chat(connection, std::move(row), now, news);
    } else if (WebhookTables::claim(connection, row, to_ms(now))) {
      news.claims.push_back({std::move(row), std::move(*webhook)});
    }
  }
  news.next_ms = WebhookTables::next_due(connection);
  return news;
}

// One of the requests that are under way, from its claim to its result.
Task<void> Outbox::send(Claim claim) {
  struct Leave {
    Outbox& outbox;
    ~Leave() {
      --outbox.under_way_;
      outbox.idle_.ring();
      outbox.look();
    }
  } leave{*this};
  OutboxRow row = claim.row;
  row.body.clear();
  const net::WebAnswer answer = co_await attempt(std::move(claim));
  while (true) {
    auto job = [row, answer, now = now()](store::Connection& connection) -> Result<News> {
      News news;
      settle(connection, row, answer, now, news);
      return news;
    };
    const auto news = co_await store_.write<News>(std::move(job));
    if (news) {
      tell(*news);
      co_return;
    }
    // Until it can be stored it stays claimed: the next start would not know the answer.
    log::warn("outbox.result_failed", "the answer of a webhook could not be stored; tried again soon",
              {{"id", row.id}, {"to", row.person}, {"what", news.error().detail}});
    if (stopping_) co_return;
    co_await pauses_.pause(kTryAgain);
  }
}

// Whatever goes wrong in our own house once the request may have left is no answer.
Task<net::WebAnswer> Outbox::attempt(Claim claim) {
  auto url = net::parse_web_url(claim.webhook.url);
  if (!url) co_return net::WebAnswer{.what = url.error().detail};
  net::WebAnswer answer{.fate = net::Fate::unanswered};
  net::WebRequest request = request_for(claim.row, claim.webhook, std::move(*url), now());
  try {
    answer = co_await client_.call(std::move(request));
  } catch (const std::exception& e) {
    answer.what = e.what();
  }
  co_return answer;
}

// What came of an attempt, for the message and for the task that it belongs to.
void Outbox::settle(store::Connection& connection, OutboxRow row, const net::WebAnswer& answer, WallTime now,
                    News& news) {
  const auto webhook = WebhookTables::find(connection, row.person);
  const Verdict verdict = judge(row, answer, webhook && webhook->idempotent, now);
  row.state = verdict.state;
  row.reason = verdict.reason;
  row.unclear = verdict.unclear;
  row.last_error = verdict.state == OutboxState::sent ? "" : error_of(answer);
  row.next_ms.reset();
  if (row.state != OutboxState::waiting) return end(connection, std::move(row), now, news);
  row.reason.clear();
  if (!WebhookTables::wait(connection, row, to_ms(verdict.again_at))) return;
  row.next_ms = to_ms(verdict.again_at);
  if (!row.task.empty())
    PrivateMessageTables::note_attempt(connection, row.task, row.attempts, row.last_error, to_ms(now));
  news.tried.push_back(std::move(row));
}

void Outbox::end(store::Connection& connection, OutboxRow row, WallTime now, News& news) {
  if (!WebhookTables::end(connection, row, to_ms(now))) return;
  if (!row.task.empty()) {
    const auto task = PrivateMessageTables::find(connection, row.task);
    BELFRY_ASSERT(task && task->status == ScheduledStatus::pending);
    if (row.state == OutboxState::sent) {
      if (auto said = PrivateMessages::say(connection, *task, row.attempts, now)) news.said.push_back(std::move(*said));
    } else {
      PrivateMessageTables::note_attempt(connection, row.task, row.attempts, row.last_error, to_ms(now));
      PrivateMessageTables::mark_failed(connection, row.task, row.reason, row.last_error, to_ms(now));
    }
    news.tasks.push_back(*PrivateMessageTables::find(connection, row.task));
  }
  news.tried.push_back(std::move(row));
}

// The person has no webhook any more. A line is in the log already; what was scheduled is said there.
void Outbox::back_to_the_chat(store::Connection& connection, OutboxRow row, WallTime now, News& news) {
  row.reason = "no_webhook";
  row.last_error = "the webhook was removed";
  if (row.task.empty()) return end(connection, std::move(row), now, news);
  if (!WebhookTables::end(connection, row, to_ms(now))) return;
  const auto task = PrivateMessageTables::find(connection, row.task);
  BELFRY_ASSERT(task && task->status == ScheduledStatus::pending);
  if (auto said = PrivateMessages::say(connection, *task, row.attempts + 1, now)) news.said.push_back(std::move(*said));
  news.tasks.push_back(*PrivateMessageTables::find(connection, row.task));
}

void Outbox::tell(const News& news) {
  for (const Chats::Said& said : news.said) chats_.tell(said);
  for (const OutboxRow& row : news.tried) {
    if (row.state == OutboxState::sent) {
      log::debug("outbox.sent", "", {{"id", row.id}, {"to", row.person}, {"attempts", row.attempts}});
    } else if (row.state == OutboxState::waiting) {
      log::info("outbox.tried", "a webhook did not take a message; tried again",
                {{"id", row.id}, {"to", row.person}, {"attempts", row.attempts}, {"what", row.last_error}});
    } else {
      log::warn("outbox.failed", "a message did not reach a webhook, and is given up",
                {{"id", row.id},
                 {"to", row.person},
                 {"attempts", row.attempts},
                 {"reason", row.reason},
                 {"what", row.last_error}});
    }
    if (row.next_ms) due_.note(*row.next_ms);
  }
  for (const ScheduledMessage& task : news.tasks) PrivateMessages::log_end(task);
}

}  // namespace belfry::chat
