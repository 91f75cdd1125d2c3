#include "belfry/bus/recipients.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/limits.h"

namespace belfry::bus {

Recipient& Recipients::add(RecipientRow row) {
  auto recipient = std::make_unique<Recipient>(std::move(row), sums_);
  Recipient& added = *recipient;
  if (!added.removed()) by_name_[added.row.name] = &added;
  by_number_[added.row.number] = std::move(recipient);
  return added;
}

Recipient* Recipients::find(std::string_view name) {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

const Recipient* Recipients::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

void Recipients::remove(Recipient& recipient, std::int64_t now_ms) {
  recipient.row.removed_ms = now_ms;
  by_name_.erase(recipient.row.name);
}

Result<> check_id(std::string_view what, std::string_view id) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  };
  if (!id.empty() && id.size() <= kIdBytesMax && std::all_of(id.begin(), id.end(), fits)) return {};
  return fail(Errc::invalid_id, fmt::format("{} \"{}\" is not an id; those have 1 to {} of a-z 0-9 _ . -", what,
                                            id.substr(0, 80), kIdBytesMax));
}

}  // namespace belfry::bus
