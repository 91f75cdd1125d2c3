// Who can receive: agents and people share one namespace.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "belfry/bus/mailbox.h"

namespace belfry::bus {

// One recipient's part of a sum over all of them: what changes the part changes the sum, so that totals are read at once
// however many recipients there are (D11).
class Part {
 public:
  Part(std::int64_t& sum, std::int64_t value) : sum_(sum), value_(value) { sum_ += value; }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  operator std::int64_t() const { return value_; }  // NOLINT(google-explicit-constructor): it is a number
  Part& operator+=(std::int64_t n) {
    value_ += n;
    sum_ += n;
    return *this;
  }
  Part& operator-=(std::int64_t n) { return *this += -n; }
  Part& operator++() { return *this += 1; }
  Part& operator--() { return *this += -1; }

 private:
  std::int64_t& sum_;
  std::int64_t value_;
};

class Attendant;

struct Sums {
  std::int64_t accepted = 0;
  std::int64_t acked = 0;
  std::int64_t cancelled = 0;
  std::int64_t expired = 0;
  std::int64_t dead = 0;
  std::int64_t pending = 0;
  std::int64_t leased = 0;
};

// One recipient with its queue and its counters. A removed one stays until its messages have ended and been forgotten.
struct Recipient {
  Recipient(RecipientRow stored, Sums& sums)
      : row(std::move(stored)),
        accepted(sums.accepted, row.sums.accepted),
        acked(sums.acked, row.sums.acked),
        cancelled(sums.cancelled, row.sums.cancelled),
        expired(sums.expired, row.sums.expired),
        dead(sums.dead, row.sums.dead),
        pending(sums.pending, row.sums.noted),  // whatever else is pending is found as the calendar is read
        leased(sums.leased, 0) {
    mailbox.unread = row.sums.noted;
  }

  Attendant* attendant = nullptr;
  RecipientRow row;  // its sums as the start found them: they run on below
  Mailbox mailbox;
  Part accepted;
  Part acked;
  Part cancelled;
  Part expired;
  Part dead;
  Part pending;  // in the mailbox or known to lie in the backlog
  Part leased;
  bool sweeping = false;  // may have forced messages that are not in the backlog yet

  std::int64_t live() const { return accepted - acked - cancelled - expired - dead; }
  std::int64_t delayed() const { return live() - pending - leased; }
  bool removed() const { return row.removed_ms.has_value(); }
};

class Recipients {
 public:
  Recipient& add(RecipientRow row);
  Recipient* find(std::string_view name);
  const Recipient* find(std::string_view name) const;
  Recipient& operator[](RecipientNumber number) { return *by_number_.at(number); }
  const Recipient& operator[](RecipientNumber number) const { return *by_number_.at(number); }
  // For records of messages, which may outlive their recipient by as much as the clock was set back meanwhile.
  std::string name_of(RecipientNumber number) const {
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? std::string() : found->second->row.name;
  }
  // Frees the name; the number stays for the messages that carry it.
  void remove(Recipient& recipient, std::int64_t now_ms);
  // Forgets a removed one of which nothing is left; what it counted stays in the sums.
  void forget(RecipientNumber number) { by_number_.erase(number); }
  std::size_t size() const { return by_name_.size(); }
  const Sums& sums() const { return sums_; }

  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [number, recipient] : by_number_) visit(*recipient);
  }
  template <class Visit>
  void each(Visit visit) {
    for (auto& [number, recipient] : by_number_) visit(*recipient);
  }

 private:
  Sums sums_;
  std::unordered_map<RecipientNumber, std::unique_ptr<Recipient>> by_number_;
  std::unordered_map<std::string, Recipient*> by_name_;
};

// Ids that people see: `[a-z0-9_.-]{1,64}`.
Result<> check_id(std::string_view what, std::string_view id);

}  // namespace belfry::bus
