#include "belfry/bus/leases.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "belfry/base/assert.h"

namespace belfry::bus {

std::string Leases::add(RecipientNumber recipient, const Ready& ready, int attempt, BootTime until) {
  const std::int64_t sequence = ready.order.sequence;
  const std::uint64_t number = ++next_number_;
  const bool fresh = leases_.emplace(sequence, Lease{number, recipient, ready, attempt, until}).second;
  BELFRY_ASSERT(fresh);
  ends_.emplace(until, sequence);
  return fmt::format("{}-{:x}", to_text(MessageId{sequence}), number);
}

void Leases::restore(const Lease& lease) {
  leases_.emplace(lease.ready.order.sequence, lease);
  ends_.emplace(lease.until, lease.ready.order.sequence);
}

const Lease* Leases::find(std::int64_t sequence) const {
  const auto found = leases_.find(sequence);
  return found == leases_.end() ? nullptr : &found->second;
}

const Lease* Leases::find(std::string_view text) const {
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return nullptr;
  const auto id = parse_message_id(text.substr(0, dash));
  if (!id) return nullptr;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + dash + 1, text.data() + text.size(), number, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return nullptr;
  const Lease* lease = find(id->sequence);
  return lease && lease->number == number ? lease : nullptr;
}

void Leases::extend(std::int64_t sequence, BootTime until) {
  Lease& lease = leases_.at(sequence);
  ends_.erase({lease.until, sequence});
  lease.until = until;
  ends_.emplace(until, sequence);
}

std::optional<Lease> Leases::remove(std::int64_t sequence) {
  const auto found = leases_.find(sequence);
  if (found == leases_.end()) return std::nullopt;
  const Lease removed = found->second;
  ends_.erase({removed.until, sequence});
  leases_.erase(found);
  return removed;
}

std::optional<BootTime> Leases::next_end() const {
  if (ends_.empty()) return std::nullopt;
  return ends_.begin()->first;
}

std::vector<Lease> Leases::take_ended(BootTime now, int limit) {
  std::vector<Lease> ended;
  while (!ends_.empty() && ends_.begin()->first <= now && static_cast<int>(ended.size()) < limit)
    ended.push_back(*remove(ends_.begin()->second));
  return ended;
}

std::vector<Lease> Leases::take_of(RecipientNumber recipient) {
  std::vector<std::int64_t> sequences;
  for (const auto& [sequence, lease] : leases_)
    if (lease.recipient == recipient) sequences.push_back(sequence);
  std::sort(sequences.begin(), sequences.end());
  std::vector<Lease> taken;
  for (const std::int64_t sequence : sequences)
    if (auto lease = remove(sequence)) taken.push_back(std::move(*lease));
  return taken;
}

}  // namespace belfry::bus
