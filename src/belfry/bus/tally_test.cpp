#include "belfry/bus/tally.h"

#include <map>
#include <memory>
#include <optional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/bus/message_tables.h"
#include "belfry/store/sqlite/sqlite_connection.h"
#include "tests/support/power_cut_vfs.h"

namespace belfry::bus {
namespace {

constexpr int kRecipients = 12;

RecipientSums any_change() {
  const auto number = [] { return *rc::gen::inRange<std::int64_t>(-3, 2'000); };
  return {.accepted = number(),
          .acked = number(),
          .cancelled = number(),
          .expired = number(),
          .dead = number(),
          .noted = number()};
}

// The tables of a bus and their tally, without the bus.
class Books {
 public:
  explicit Books(std::size_t bytes_max) : bytes_max_(bytes_max) {
    open();
    MessageTables::migrate(*connection_);
    for (int i = 0; i < kRecipients; ++i)
      numbers_.push_back(MessageTables::add_recipient(*connection_, {.name = std::to_string(i), .kind = "external"}));
    tally_->load(*connection_);
  }

  Tally& tally() { return *tally_; }
  store::Connection& connection() { return *connection_; }
  RecipientNumber number(int i) const { return numbers_.at(static_cast<std::size_t>(i)); }

  void begin() { connection_->execute("BEGIN IMMEDIATE"); }
  void change(int recipient, const RecipientSums& by) { tally_->change(number(recipient)) += by; }
  void forget(int recipient) {
    connection_->run("DELETE FROM recipient WHERE number = ?1", number(recipient));
    tally_->forget(number(recipient));
  }
  void write(store::Room room = store::Room::enough) { tally_->before_commit(*connection_, room); }
  void end(bool commit) {
    connection_->execute(commit ? "COMMIT" : "ROLLBACK");
    tally_->after_group(commit);
  }
  void group(int recipient, const RecipientSums& by) {
    begin();
    change(recipient, by);
    write();
    end(true);
  }
  void restart() {
    connection_.reset();
    open();
    tally_->load(*connection_);
  }
  void kill() {
    disk_.halt();
    connection_.reset();
    disk_.reboot();
    open();
    tally_->load(*connection_);
  }

  // As a start finds them.
  std::optional<RecipientSums> stored(int recipient) {
    for (const RecipientRow& row : MessageTables::load(*connection_).recipients)
      if (row.number == number(recipient)) return row.sums;
    return std::nullopt;
  }
  std::int64_t rows() { return ask("SELECT count(*) FROM tally"); }
  std::int64_t bytes() { return ask("SELECT sum(length(changes)) FROM tally"); }

 private:
  std::int64_t ask(const char* sql) {
    auto rows = connection_->query(sql);
    return rows.next() ? rows.integer(0) : -1;
  }
  void open() {
    tally_.emplace(bytes_max_);
    connection_ = store::sqlite::open({.path = "belfry.db", .vfs = disk_.vfs_name()});
  }

  std::size_t bytes_max_;
  SeededRandom random_{1};
  testing::Disk disk_{random_};
  std::optional<Tally> tally_;
  std::unique_ptr<store::Connection> connection_;
  std::vector<RecipientNumber> numbers_;
};

enum class End { committed, refused, refused_before_it_was_written, killed };

// However groups are written, refused and cut off, and recipients forgotten: what was committed adds up, in memory and on
// the disk.
// G14, D11
RC_GTEST_PROP(Tally, SaysWhatWasCommittedAndNothingElse, ()) {
  Books books(*rc::gen::inRange<std::size_t>(0, 1'000));
  std::map<int, RecipientSums> wanted;
  for (int i = 0; i < kRecipients; ++i) wanted[i] = {};
  const int groups = *rc::gen::inRange(1, 40);
  for (int i = 0; i < groups; ++i) {
    const auto changes = *rc::gen::container<std::vector<std::pair<int, RecipientSums>>>(
        rc::gen::pair(rc::gen::inRange(0, kRecipients), rc::gen::exec(any_change)));
    const auto end = *rc::gen::weightedElement<End>(
        {{9, End::committed}, {1, End::refused}, {1, End::refused_before_it_was_written}, {1, End::killed}});
    std::map<int, RecipientSums> after = wanted;
    books.begin();
    for (const auto& [recipient, change] : changes) {
      if (!after.contains(recipient)) continue;
      books.change(recipient, change);
      after[recipient] += change;
      RC_ASSERT(books.tally().sums(books.number(recipient)) == after[recipient]);
    }
    if (const int gone = *rc::gen::inRange(0, 10 * kRecipients); after.erase(gone) > 0) books.forget(gone);
    if (end != End::refused_before_it_was_written) books.write();
    if (end == End::killed) {
      books.kill();
    } else {
      books.end(end == End::committed);
    }
    if (end == End::committed) wanted = after;
    if (*rc::gen::inRange(0, 8) == 0) books.restart();
    for (int recipient = 0; recipient < kRecipients; ++recipient) {
      const bool there = wanted.contains(recipient);
      RC_ASSERT(books.stored(recipient) == (there ? std::optional(wanted[recipient]) : std::nullopt));
      RC_ASSERT(books.tally().sums(books.number(recipient)) == (there ? wanted[recipient] : RecipientSums{}));
    }
  }
}

RC_GTEST_PROP(Tally, ReadsWhatItWrote, ()) {
  const auto changes =
      *rc::gen::container<SumsByRecipient>(rc::gen::inRange<RecipientNumber>(0, INT32_MAX), rc::gen::exec(any_change));
  SumsByRecipient read;
  RC_ASSERT(add_from_text(to_text(changes), read));
  RC_ASSERT(read == changes);
}

TEST(Tally, AddsUpWhatIsSaidTwice) {
  SumsByRecipient read;
  ASSERT_TRUE(add_from_text("7a2k1;12c1;7a3n-1;", read));
  EXPECT_EQ(read, (SumsByRecipient{{7, {.accepted = 5, .acked = 1, .noted = -1}}, {12, {.cancelled = 1}}}));
}

TEST(Tally, RefusesWhatItDidNotWrite) {
  for (const char* wrong : {"a1;", "7", "7a1", "7a;", "7x1;", "7a1.5;", "-1a1;", "2147483648a1;", "7a1;;", " 7a1;",
                            "7a10000000000001;", "7a10000000000000a1;", "7a99999999999999999999;"}) {
    SumsByRecipient read;
    EXPECT_FALSE(add_from_text(wrong, read)) << wrong;
  }
  Books books(1'000);
  books.connection().run("INSERT INTO tally(changes) VALUES('7a')");
  try {
    Tally::read(books.connection());
    FAIL() << "it was taken";
  } catch (const store::Fault& fault) {
    EXPECT_EQ(fault.kind(), store::FaultKind::corrupt);
  }
  const auto problems = MessageTables::conservation_problems(books.connection());
  EXPECT_EQ(problems, std::vector<std::string>{"the table \"tally\" holds what Belfry did not write"});
}

// Hundreds of recipients must not cost a group of sends hundreds of rows, nor many groups a long start.
// D11
TEST(Tally, IsOneRowAGroupAndSaysAllAnewWhenAsMuchHasCome) {
  for (const bool restarting : {false, true}) {
    Books books(200);
    std::int64_t most = 0;
    for (int i = 1; i <= 500; ++i) {
      const std::int64_t before = books.rows();
      books.begin();
      for (int recipient = 0; recipient < kRecipients; ++recipient) books.change(recipient, {.accepted = 1});
      books.write();
      books.end(true);
      EXPECT_TRUE(books.rows() == before + 1 || books.rows() == 1);
      most = std::max(most, books.bytes());
      if (restarting) books.restart();
    }
    EXPECT_EQ(books.stored(3)->accepted, 500);
    EXPECT_LT(most, 800) << restarting;
  }
}

// Saying all anew may take many pages: what a full disk has left belongs to acks.
// G17
TEST(Tally, AppendsWhileRoomIsScarce) {
  Books books(60);
  for (int i = 1; i <= 10; ++i) {
    books.begin();
    books.change(0, {.acked = 1});
    books.write(store::Room::scarce);
    books.end(true);
    EXPECT_EQ(books.rows(), i);
  }
  books.group(0, {.accepted = 1});
  EXPECT_EQ(books.rows(), 1);
}

// One group is refused for want of room for all; those after it need a row only.
// G17
TEST(Tally, AppendsAfterARefusal) {
  Books books(60);
  for (int i = 0; i < 3; ++i) books.group(0, {.accepted = 1});
  EXPECT_EQ(books.rows(), 3);
  books.begin();
  books.change(0, {.accepted = 1});
  books.write();
  EXPECT_EQ(books.rows(), 1);
  books.end(false);
  books.group(0, {.acked = 1});
  EXPECT_EQ(books.rows(), 4);
  for (int i = 0; i < 10 && books.rows() > 1; ++i) books.group(0, {.accepted = 1});
  EXPECT_EQ(books.rows(), 1);
}

// D11
TEST(Tally, IsNotSaidAnewForEveryStart) {
  Books books(60);
  const auto group = [&] {
    books.begin();
    for (int i = 0; i < kRecipients; ++i) books.change(i, {.accepted = 1});
    books.write();
    books.end(true);
  };
  for (int i = 0; i < 20 || books.rows() > 1; ++i) group();
  books.restart();
  group();
  EXPECT_EQ(books.rows(), 2);
}

// D11, D21
TEST(Tally, ARemovedRecipientIsForgottenOnceAllItsMessagesHaveEnded) {
  Books books(1'000);
  store::Connection& connection = books.connection();
  MessageTables tables(1'000);
  tables.prepare_to_write(connection);
  const auto group = [&](const auto& job) {
    books.begin();
    job();
    tables.before_commit(connection, store::Room::enough);
    connection.execute("COMMIT");
    tables.after_group(true);
  };
  MessageRow message{.sequence = 1, .recipient = books.number(0)};
  message.body.payload = "{}";
  group([&] {
    tables.insert(connection, message, 0);
    MessageTables::remove_recipient(connection, books.number(0), 1'000);
    MessageTables::remove_recipient(connection, books.number(1), 1'000);
    EXPECT_EQ(tables.forget_removed(connection, 2'000), std::vector{books.number(1)});
  });
  group([&] {
    EXPECT_TRUE(tables.forget_removed(connection, 2'000).empty());
    tables.end(connection, {.sequence = 1, .recipient = books.number(0), .state = MessageState::expired});
    EXPECT_EQ(tables.forget_removed(connection, 2'000), std::vector{books.number(0)});
  });
  EXPECT_FALSE(books.stored(0));
}

// G14
TEST(Tally, ADoctorMissesTheRecipientOfAMessage) {
  Books books(1'000);
  MessageTables tables(1'000);
  MessageRow message{.sequence = 1, .recipient = books.number(0)};
  message.body.payload = "{}";
  tables.insert(books.connection(), message, 0);
  tables.before_commit(books.connection(), store::Room::enough);
  EXPECT_TRUE(MessageTables::conservation_problems(books.connection()).empty());
  books.connection().run("DELETE FROM recipient WHERE number = ?1", books.number(0));
  EXPECT_EQ(MessageTables::conservation_problems(books.connection()),
            std::vector<std::string>{"a message has no recipient, for example sequence 1"});
}

// Before version 7 the sums were columns of `recipient`.
// G14
TEST(Tally, OlderDataKeepsItsSums) {
  for (const int recipients : {0, kRecipients}) {
    Books books(1'000);
    store::Connection& connection = books.connection();
    connection.run("DROP TABLE tally");
    for (const char* column : {"accepted", "acked", "cancelled", "expired", "dead", "noted"})
      connection.execute(std::string("ALTER TABLE recipient ADD COLUMN ") + column + " INTEGER NOT NULL DEFAULT 0");
    connection.run("UPDATE schema_version SET version = 6 WHERE part = 'bus'");
    connection.run(
        "UPDATE recipient SET accepted = 100 + number, acked = 5, cancelled = 4, expired = 3, dead = 2, noted = 1");
    connection.run("DELETE FROM recipient WHERE number > ?1", recipients);
    MessageTables::migrate(connection);
    books.restart();
    for (int i = 0; i < recipients; ++i) {
      const RecipientSums wanted{
          .accepted = 100 + books.number(i), .acked = 5, .cancelled = 4, .expired = 3, .dead = 2, .noted = 1};
      EXPECT_EQ(books.stored(i), wanted);
    }
    EXPECT_EQ(books.stored(0).has_value(), recipients > 0);
  }
}

}  // namespace
}  // namespace belfry::bus
