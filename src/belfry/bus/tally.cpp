#include "belfry/bus/tally.h"

#include <charconv>
#include <iterator>
#include <utility>

#include "belfry/store/fault_words.h"

namespace belfry::bus {
namespace {

using store::Connection;

constexpr std::int64_t kBytesBesideText = 16;

// No count of ours is beyond it, and those of all recipients can be added up.
constexpr std::int64_t kSumMax = 10'000'000'000'000;

constexpr std::pair<char, std::int64_t RecipientSums::*> kLetters[] = {
    {'a', &RecipientSums::accepted}, {'k', &RecipientSums::acked}, {'c', &RecipientSums::cancelled},
    {'e', &RecipientSums::expired},  {'d', &RecipientSums::dead},  {'n', &RecipientSums::noted},
};

void append_number(std::string& text, std::int64_t number) {
  char digits[24];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
  text.append(digits, end);
}

bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number >= -kSumMax && number <= kSumMax;
}

std::int64_t RecipientSums::* member_of(char letter) {
  for (const auto& [known, member] : kLetters)
    if (known == letter) return member;
  return nullptr;
}

}  // namespace

std::string to_text(const SumsByRecipient& changes) {
  std::string text;
  for (const auto& [number, change] : changes) {
    append_number(text, number);
    for (const auto& [letter, member] : kLetters) {
      if (change.*member == 0) continue;
      text += letter;
      append_number(text, change.*member);
    }
    text += ';';
  }
  return text;
}

bool add_from_text(std::string_view text, SumsByRecipient& sums) {
  while (!text.empty()) {
    std::int64_t number = 0;
    if (!take_number(text, number) || number < 0 || number > INT32_MAX) return false;
    RecipientSums& sum = sums[static_cast<RecipientNumber>(number)];
    while (!text.empty() && text.front() != ';') {
      const auto member = member_of(text.front());
      text.remove_prefix(1);
      std::int64_t by = 0;
      if (!member || !take_number(text, by)) return false;
      sum.*member += by;
      if (sum.*member < -kSumMax || sum.*member > kSumMax) return false;
    }
    if (text.empty()) return false;
    text.remove_prefix(1);
  }
  return true;
}

const char* Tally::tables() { return "CREATE TABLE tally(id INTEGER PRIMARY KEY, changes TEXT NOT NULL)"; }

SumsByRecipient Tally::read(Connection& connection) {
  SumsByRecipient sums;
  auto rows = connection.query("SELECT changes FROM tally");
  while (rows.next()) {
    if (!add_from_text(rows.text(0), sums))
      throw store::NotAsWritten("the table \"tally\" holds what Belfry did not write");
  }
  return sums;
}

void Tally::load(Connection& connection) {
  {
    auto rows = connection.query("SELECT coalesce(sum(length(changes) + ?1), 0) FROM tally", kBytesBesideText);
    if (rows.next()) bytes_ = static_cast<std::size_t>(rows.integer(0));
  }
  // The rows may still name some that were forgotten.
  SumsByRecipient all = read(connection);
  auto rows = connection.query("SELECT number FROM recipient");
  while (rows.next())
    if (auto found = all.extract(static_cast<RecipientNumber>(rows.integer(0)))) sums_.insert(std::move(found));
  rewrite_at_ = 2 * to_text(sums_).size() + bytes_max_;
}

RecipientSums Tally::sums(RecipientNumber number) const {
  RecipientSums sums;
  for (const SumsByRecipient* part : {&sums_, &in_group_})
    if (const auto found = part->find(number); found != part->end()) sums += found->second;
  return sums;
}

void Tally::before_commit(Connection& connection, store::Room room) {
  if (in_group_.empty()) return;
  std::string text = to_text(in_group_);
  if (room == store::Room::enough && bytes_ >= rewrite_at_) {
    rewritten_in_group_ = true;
    text += to_text(sums_);
    connection.run("DELETE FROM tally");
  }
  connection.run("INSERT INTO tally(changes) VALUES(?1)", text);
  bytes_in_group_ = text.size() + static_cast<std::size_t>(kBytesBesideText);
}

void Tally::after_group(bool committed) {
  if (committed) {
    for (const auto& [number, change] : in_group_) sums_[number] += change;
    for (const RecipientNumber number : forgotten_in_group_) sums_.erase(number);
    bytes_ = rewritten_in_group_ ? bytes_in_group_ : bytes_ + bytes_in_group_;
    if (rewritten_in_group_) rewrite_at_ = 2 * bytes_ + bytes_max_;
  } else if (rewritten_in_group_) {
    // Perhaps there is room for a row, if not for all.
    rewrite_at_ = bytes_ + bytes_max_;
  }
  in_group_.clear();
  forgotten_in_group_.clear();
  bytes_in_group_ = 0;
  rewritten_in_group_ = false;
}

}  // namespace belfry::bus
