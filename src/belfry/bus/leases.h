// Messages in the hands of a receiver. A lease ends by its ack, by being given back, or by its time.
//
// Leases live in memory only: a restart redelivers. The number in a lease's text is drawn anew each life, so an ack from
// an earlier life, or for an earlier attempt, is refused (G8).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "belfry/base/time.h"
#include "belfry/bus/mailbox.h"

namespace belfry::bus {

struct Lease {
  std::uint64_t number = 0;
  RecipientNumber recipient = 0;
  Ready ready;
  int attempt = 1;
  BootTime until;
};

class Leases {
 public:
  explicit Leases(std::uint64_t first_number) : next_number_(first_number) {}

  std::string add(RecipientNumber recipient, const Ready& ready, int attempt, BootTime until);
  // Takes back a lease that was removed for an ack which then failed.
  void restore(const Lease& lease);
  const Lease* find(std::int64_t sequence) const;
  // The lease that this text names, if it is still held.
  const Lease* find(std::string_view text) const;
  void extend(std::int64_t sequence, BootTime until);
  std::optional<Lease> remove(std::int64_t sequence);
  std::optional<BootTime> next_end() const;
  std::vector<Lease> take_ended(BootTime now, int limit);
  // All of one recipient, who is no more. Looks at every lease: recipients are not removed often.
  std::vector<Lease> take_of(RecipientNumber recipient);
  std::size_t size() const { return leases_.size(); }

 private:
  std::uint64_t next_number_;
  std::unordered_map<std::int64_t, Lease> leases_;  // by sequence
  std::set<std::pair<BootTime, std::int64_t>> ends_;
};

}  // namespace belfry::bus
