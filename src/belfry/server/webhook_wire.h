// JSON of webhooks to types and back: the part of wire for their routes. snake_case, like what goes out to them.
#pragma once

#include <string>
#include <string_view>

#include "belfry/chat/webhooks.h"

namespace belfry::server::wire {

Result<chat::Webhook> read_webhook(std::string_view body);
Result<chat::Incoming> read_incoming(std::string_view body);
Result<chat::OutboxQuery> read_outbox_query(std::string_view query);

// Never with its secret.
std::string webhook(const chat::Webhook& webhook);
std::string webhook_removed(const std::string& person);
std::string outbox(const chat::OutboxPage& page);

}  // namespace belfry::server::wire
