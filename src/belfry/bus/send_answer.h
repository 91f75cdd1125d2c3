// What a sender is told, in JSON: the same over HTTP, in a batch and as a tool's result.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/json.h"
#include "belfry/base/result.h"
#include "belfry/bus/envelope.h"
#include "belfry/bus/send_request.h"
#include "belfry/when/when.h"

namespace belfry::bus {

// An answer's `understood`: how a schedule was read.
struct Understood {
  const when::Reading& reading;
  std::string_view text;
};
void write_understood(json::Writer& writer, const std::optional<Understood>& understood);
void write_warnings(json::Writer& writer, const std::vector<std::string>& first,
                    const std::vector<std::string>& second);

std::string sent(const Sent& sent, const std::vector<std::string>& warnings,
                 std::optional<Understood> understood = std::nullopt);
// One answer a recipient, in the order of `to`.
std::string sent_to_each(const SendRequest& request, const std::vector<Result<Sent>>& results);
// Of a request whose schedule was read; none if it had none.
std::optional<Understood> understood(const SendRequest& request);

}  // namespace belfry::bus
