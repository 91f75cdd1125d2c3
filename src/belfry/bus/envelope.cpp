#include "belfry/bus/envelope.h"

#include <array>

namespace belfry::bus {
namespace {

constexpr std::array<std::string_view, 7> kWords{"delayed",   "pending", "leased", "acked",
                                                 "cancelled", "expired", "dead"};

}  // namespace

std::string_view word(MessageState state) { return kWords.at(static_cast<std::size_t>(state)); }

std::optional<MessageState> parse_message_state(std::string_view text) {
  for (std::size_t i = 0; i < kWords.size(); ++i)
    if (kWords[i] == text) return static_cast<MessageState>(i);
  return std::nullopt;
}

}  // namespace belfry::bus
