// Who can receive: agents and people share one namespace.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "belfry/bus/mailbox.h"

namespace belfry::bus {

// One recipient with its queue and its counters. A removed one stays until its messages have ended.
struct Recipient {
  RecipientRow row;
  Mailbox mailbox;
  std::int64_t pending = 0;  // in the mailbox or known to lie in the backlog
  std::int64_t leased = 0;
  bool sweeping = false;  // may have forced messages that are not in the backlog yet

  std::int64_t live() const { return row.accepted - row.acked - row.cancelled - row.expired - row.dead; }
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
  // Frees the name; the number stays for the messages that carry it.
  void remove(Recipient& recipient, std::int64_t now_ms);
  std::size_t size() const { return by_name_.size(); }

  template <class Visit>
  void each(Visit visit) const {
    for (const auto& [number, recipient] : by_number_) visit(*recipient);
  }
  template <class Visit>
  void each(Visit visit) {
    for (auto& [number, recipient] : by_number_) visit(*recipient);
  }

 private:
  std::unordered_map<RecipientNumber, std::unique_ptr<Recipient>> by_number_;
  std::unordered_map<std::string, Recipient*> by_name_;
};

// Ids that people see: `[a-z0-9_.-]{1,64}`.
Result<> check_id(std::string_view what, std::string_view id);

}  // namespace belfry::bus
