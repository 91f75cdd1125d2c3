// What the messages of each recipient add up to (G14), as a log.
//
// A group of sends may be for hundreds of recipients: a row for each, and often a page, would cost as much as the messages.
// So a group appends one row of text that says what it changed, and when the rows are more than twice as long as what says
// all, that takes their place as one row. The sums are what the rows add up to.
//
// Lives on the store's thread. What a group changed counts once the group is committed: after_group() says so.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "belfry/bus/rows.h"
#include "belfry/store/store.h"

namespace belfry::bus {

using SumsByRecipient = std::unordered_map<RecipientNumber, RecipientSums>;

// A row's text: "7a2k1;12c1;" is two more accepted and one acked for recipient 7, one cancelled for 12.
std::string to_text(const SumsByRecipient& changes);
// Adds what the text says; false if it is none of ours.
bool add_from_text(std::string_view text, SumsByRecipient& sums);

class Tally {
 public:
  // So many bytes more than that may be appended before all is said anew: a start reads them.
  explicit Tally(std::size_t bytes_max) : bytes_max_(bytes_max), rewrite_at_(bytes_max) {}

  static const char* tables();
  static SumsByRecipient read(store::Connection& connection);
  // Before the first group.
  void load(store::Connection& connection);

  // What the group that is being written changes.
  RecipientSums& change(RecipientNumber number) { return in_group_[number]; }
  // With what this group has changed so far.
  RecipientSums sums(RecipientNumber number) const;
  // The group deletes the recipient.
  void forget(RecipientNumber number) { forgotten_in_group_.push_back(number); }

  void before_commit(store::Connection& connection, store::Room room);
  void after_group(bool committed);

 private:
  std::size_t bytes_max_;
  std::size_t rewrite_at_;
  std::size_t bytes_ = 0;
  SumsByRecipient sums_;
  SumsByRecipient in_group_;
  std::vector<RecipientNumber> forgotten_in_group_;
  std::size_t bytes_in_group_ = 0;
  bool rewritten_in_group_ = false;
};

}  // namespace belfry::bus
