// What becomes of files that were harmed, swapped or taken away while nobody used them: it is noticed, or it is without
// effect (G22).
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/store/fault_words.h"
#include "tests/support/simulated_store.h"

namespace belfry::store {
namespace {

using ::belfry::testing::Disk;
using ::belfry::testing::SimulatedStore;

constexpr const char* kDatabase = "belfry.db";
constexpr const char* kLog = "belfry.db-wal";
constexpr const char* kWitness = "belfry.db-witness";
constexpr std::size_t kFrame = 24 + 4096;

using Files = std::map<std::string, std::string>;

std::string body_of(std::int64_t id) {
  return fmt::format("{:04}", id) + std::string(static_cast<std::size_t>(id * 37 % 900), 'b');
}

class HarmTest : public ::testing::Test {
 protected:
  void open(bool accept_loss = false) {
    SimulatedStore::Options options;
    options.store.checkpoint_pages = checkpoint_pages_;
    options.accept_loss = accept_loss;
    store_.emplace(disk_, std::move(options));
  }

  // Each in a commit of its own.
  void write(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto job = [id = ++last_id_](Connection& c) -> Result<int> {
        c.run("INSERT INTO row(id, body) VALUES(?1, ?2)", id, body_of(id));
        c.note_given_out(id);
        return 0;
      };
      ASSERT_TRUE(store_->wait((*store_)->write<int>(job)));
    }
  }

  void kill() {
    disk_.halt();
    store_.reset();
    disk_.reboot();
  }
  void stop() { store_.reset(); }

  void harm(const char* name, std::size_t at, unsigned char mask = 1) {
    std::string bytes = contents(name);
    ASSERT_LT(at, bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ mask);
    disk_.replace(name, std::move(bytes));
  }
  std::string contents(const char* name) const { return disk_.contents(name).value_or(""); }
  Files files() const {
    return {{kDatabase, contents(kDatabase)}, {kLog, contents(kLog)}, {kWitness, contents(kWitness)}};
  }
  void put(const Files& files) {
    for (const auto& [name, bytes] : files) disk_.replace(name, bytes);
  }

  // What opening says: nothing if it goes well.
  std::string opening() {
    store_.reset();
    try {
      open();
      return "";
    } catch (const Fault& fault) {
      return in_plain_words(fault);
    }
  }

  std::optional<std::vector<std::int64_t>> rows() {
    const auto read = [](Connection& c) -> Result<std::vector<std::int64_t>> {
      std::vector<std::int64_t> ids;
      auto found = c.query("SELECT id, body FROM row ORDER BY id");
      while (found.next()) {
        EXPECT_EQ(found.text(1), body_of(found.integer(0))) << "handed out altered";
        ids.push_back(found.integer(0));
      }
      return ids;
    };
    auto ids = store_->wait((*store_)->read<std::vector<std::int64_t>>(read));
    return ids ? std::optional(std::move(*ids)) : std::nullopt;
  }
  std::int64_t count() {
    const auto found = rows();
    return found ? static_cast<std::int64_t>(found->size()) : -1;
  }

  int checkpoint_pages_ = 1'000;
  SeededRandom random_{11};
  Disk disk_{random_};
  std::int64_t last_id_ = 0;
  std::optional<SimulatedStore> store_;
};

// G22
TEST_F(HarmTest, ABitThatFlipsInTheLogIsNoticedAndNothingIsChanged) {
  open();
  write(40);
  kill();
  harm(kLog, 32 + 30 * kFrame + 500);
  const Files before = files();

  const std::string said = opening();

  EXPECT_TRUE(said.contains("the log ends before what was acknowledged")) << said;
  EXPECT_TRUE(said.contains("commits are missing")) << said;
  EXPECT_EQ(files(), before);
  EXPECT_EQ(opening(), said) << "and again";
}

// G22
TEST_F(HarmTest, ALogThatIsCutOrZeroedOrTakenAwayIsNoticed) {
  open();
  write(40);
  kill();
  const Files whole = files();
  const std::string log = contents(kLog);

  disk_.replace(kLog, log.substr(0, 32 + 40 * kFrame));
  EXPECT_NE(opening(), "") << "cut at a frame's border";
  disk_.replace(kLog, log.substr(0, log.size() / 2));
  EXPECT_NE(opening(), "") << "cut in the middle";
  disk_.replace(kLog, std::string(log).replace(30 * kFrame, 512, std::string(512, '\0')));
  EXPECT_NE(opening(), "") << "a sector of zeros";
  disk_.replace(kLog, std::string(log).replace(0, 32, std::string(32, '\0')));
  EXPECT_NE(opening(), "") << "its header";
  disk_.take_away(kLog);
  EXPECT_NE(opening(), "") << "all of it";

  put(whole);
  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 40);
}

// G22
TEST_F(HarmTest, AMissingLogOfAServerThatEndedInPeaceHarmsNobody) {
  open();
  write(40);
  stop();
  disk_.take_away(kLog);

  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 40);
}

// G22: its beginning alone would hide what is newer in the database.
TEST_F(HarmTest, ALogThatWasMovedIntoTheDatabaseAndThenHarmedIsDropped) {
  open();
  write(40);
  stop();
  harm(kLog, 32 + 30 * kFrame + 500);

  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 40);
  write(5);
  kill();
  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 45);
}

// G22
TEST_F(HarmTest, AWitnessThatIsMissingTornOrBehindIsNoAlarm) {
  open();
  write(10);
  kill();
  const std::string early = contents(kWitness);
  open();
  write(30);
  kill();
  const std::string late = contents(kWitness);

  disk_.take_away(kWitness);
  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 40);
  kill();
  disk_.replace(kWitness, late.substr(0, 50));
  EXPECT_EQ(opening(), "");
  kill();
  disk_.replace(kWitness, early);
  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 40);
}

// G22
TEST_F(HarmTest, AWitnessOfALifeOfTheLogBeforeIsNoAlarm) {
  checkpoint_pages_ = 20;
  open();
  write(10);
  kill();
  const std::string early = contents(kWitness);
  open();
  write(100);  // several lives of the log
  kill();
  disk_.replace(kWitness, early);

  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 110);
}

// G22
TEST_F(HarmTest, WhatIsLostCanBeAcceptedAndNoIdIsGivenAgain) {
  open();
  write(40);
  kill();
  harm(kLog, 32 + 30 * kFrame + 500);
  ASSERT_NE(opening(), "");

  open(/*accept_loss=*/true);
  EXPECT_LT(count(), 40);
  EXPECT_GT((*store_)->connection_before_start().given_out(), 40) << "the ids of what was lost";
  const std::int64_t given_out = (*store_)->connection_before_start().given_out();
  last_id_ = given_out;
  write(5);
  kill();

  EXPECT_EQ(opening(), "") << "it was accepted for good";
  EXPECT_GT((*store_)->connection_before_start().given_out(), given_out);
}

// G22
TEST_F(HarmTest, WhereNothingIsLostNothingCanBeAccepted) {
  open();
  write(5);
  kill();
  const Files before = files();
  try {
    open(/*accept_loss=*/true);
    ADD_FAILURE() << "it was opened";
  } catch (const Fault& fault) {
    EXPECT_TRUE(std::string(in_plain_words(fault)).contains("nothing is lost")) << fault.what();
  }
  EXPECT_EQ(files(), before);
}

// G22
TEST_F(HarmTest, ADatabaseOfAnotherDayBesideTodaysLogIsRefused) {
  checkpoint_pages_ = 20;
  open();
  write(30);
  stop();
  const std::string monday = contents(kDatabase);
  open();
  write(100);
  kill();
  const Files tuesday = files();
  disk_.replace(kDatabase, monday);

  EXPECT_TRUE(opening().contains("different times"));

  put(tuesday);
  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 130);
}

// G22
TEST_F(HarmTest, YesterdaysFilesBesideTodaysWitnessAreALoss) {
  checkpoint_pages_ = 20;
  open();
  write(30);
  stop();
  const Files yesterday = files();
  open();
  write(60);
  stop();
  const std::string today = contents(kWitness);
  put(yesterday);
  disk_.replace(kWitness, today);
  EXPECT_TRUE(opening().contains("missing"));

  disk_.take_away(kWitness);
  EXPECT_EQ(opening(), "") << "who puts a backup back takes the witness away";
  EXPECT_EQ(count(), 30);
}

// G22: with the log of a life that had been moved before, recovery would lay old pages over new ones.
TEST_F(HarmTest, WhatIsLostAfterACleanStopIsWhatCameAfterIt) {
  open();
  write(40);
  stop();
  open();
  write(10);
  kill();
  const Files whole = files();
  const std::size_t end = whole.at(kLog).size();
  int lossy = 0;
  for (std::size_t at = 100; at < end; at += 1'500) {
    store_.reset();
    put(whole);
    harm(kLog, at);
    if (opening().empty()) {
      EXPECT_EQ(count(), 50) << at;
      continue;
    }
    ++lossy;
    open(/*accept_loss=*/true);
    EXPECT_GE(count(), 40) << at;
    EXPECT_EQ((*store_)->connection_before_start().integrity_problem(), "") << at;
    kill();
  }
  EXPECT_GT(lossy, 5);
}

// G22: the log that was put back had never been moved into the database that was put back with it.
TEST_F(HarmTest, ALogOfABackupIsNotEmptiedByTodaysWitness) {
  open();
  write(40);
  kill();
  const Files backup = files();
  open();
  write(10);
  stop();
  disk_.replace(kDatabase, backup.at(kDatabase));
  disk_.replace(kLog, backup.at(kLog));

  EXPECT_TRUE(opening().contains("missing"));
  EXPECT_EQ(contents(kLog), backup.at(kLog));
  disk_.take_away(kWitness);
  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 40);
}

// G22
TEST_F(HarmTest, FilesOfNeighbouringDaysAreToldApart) {
  checkpoint_pages_ = 20;
  std::vector<Files> days;  // each as it lay there after a clean stop, with one checkpoint more
  for (int day = 0; day < 4; ++day) {
    open();
    write(3);
    stop();
    days.push_back(files());
  }
  open();
  write(3);
  kill();
  days.push_back(files());
  for (std::size_t of_file = 0; of_file < days.size(); ++of_file) {
    for (std::size_t of_log = 0; of_log < days.size(); ++of_log) {
      for (std::size_t of_witness = 0; of_witness <= days.size(); ++of_witness) {
        store_.reset();
        disk_.replace(kDatabase, days[of_file].at(kDatabase));
        disk_.replace(kLog, days[of_log].at(kLog));
        disk_.take_away(kWitness);
        if (of_witness < days.size()) disk_.replace(kWitness, days[of_witness].at(kWitness));
        if (!opening().empty()) {
          EXPECT_FALSE(of_file == of_log && of_file == of_witness) << of_file;
          continue;
        }
        // What can be read is that of one day, whole; and not less than the witness knows of.
        const std::int64_t found = count();
        EXPECT_EQ(found % 3, 0) << of_file << of_log << of_witness;
        const std::size_t in_file = std::min(of_file, days.size() - 2);  // the last day's lines are in its log
        const std::size_t known = of_witness < days.size() ? of_witness : 0;
        EXPECT_GE(found, static_cast<std::int64_t>(3 * (std::max(in_file, known) + 1)))
            << of_file << of_log << of_witness;
        EXPECT_EQ((*store_)->connection_before_start().integrity_problem(), "") << of_file << of_log << of_witness;
      }
    }
  }
}

// G22: what a power cut leaves of a page that was being moved is in the log still.
TEST_F(HarmTest, APageThatWasTornWhileItWasMovedIsNoAlarm) {
  open();
  write(10);
  stop();
  open();
  write(10);
  kill();
  const Files before = files();
  ASSERT_EQ(opening(), "");
  stop();
  const std::string after = contents(kDatabase);
  for (std::size_t page = 0; page < after.size(); page += 4096) {
    for (std::size_t cut = 512; cut < 4096; cut += 512) {
      store_.reset();
      put(before);
      std::string torn = before.at(kDatabase);
      torn.resize(std::max(torn.size(), page + 4096));
      torn.replace(page, cut, after, page, cut);
      disk_.replace(kDatabase, torn);
      ASSERT_EQ(opening(), "") << page << " " << cut;
      ASSERT_EQ(count(), 20) << page << " " << cut;
      kill();
    }
  }
}

// G22
TEST_F(HarmTest, ANewDatabaseInTheOldOnesPlaceIsNoticed) {
  open();
  write(30);
  stop();
  disk_.take_away(kDatabase);
  disk_.take_away(kLog);

  EXPECT_TRUE(opening().contains("not the database that belfry.db-witness belongs to"));
}

// G22
TEST_F(HarmTest, APageThatWasAlteredIsNotHandedOut) {
  open();
  write(200);
  stop();
  const std::string whole = contents(kDatabase);
  const std::size_t at = whole.find("0100bbbb");
  ASSERT_NE(at, std::string::npos);
  std::string altered = whole;
  altered.replace(at, 4, "0101");
  disk_.replace(kDatabase, altered);
  disk_.take_away(kLog);  // it has the page, too

  open();
  EXPECT_EQ(rows(), std::nullopt);
  EXPECT_TRUE((*store_)->damage().has_value());
  const PageReport report = (*store_)->connection_before_start().examine_pages();
  EXPECT_EQ(report.harmed, 1);
  EXPECT_EQ(report.examples.at(0), static_cast<std::int64_t>(at / 4096 + 1));
  EXPECT_EQ(report.covered, report.pages);
  const auto other_row = [](Connection& c) -> Result<bool> {
    return c.query("SELECT body FROM row WHERE id = 1").next();
  };
  EXPECT_TRUE(store_->wait((*store_)->read<bool>(other_row)).value()) << "other pages can be read";
}

// G22
TEST_F(HarmTest, ADatabaseThatWasCutIsNotTakenForAShorterOne) {
  checkpoint_pages_ = 20;
  open();
  write(200);
  kill();
  const Files whole = files();
  for (std::size_t pages = whole.at(kDatabase).size() / 4096 - 1; pages > 3; --pages) {
    put(whole);
    // So much is left of the page that it looks like one without rows; the log alone says how long the database is.
    disk_.replace(kDatabase, whole.at(kDatabase).substr(0, pages * 4096 + 5));
    std::optional<std::vector<std::int64_t>> found;
    if (opening().empty()) found = rows();
    EXPECT_TRUE(!found || found->size() == 200) << pages;
    if (store_) kill();
  }
}

// G22
TEST_F(HarmTest, AHarmedDigestHarmsNoPage) {
  open();
  write(200);
  stop();
  const Files whole = files();
  for (std::size_t at = 4096; at < whole.at(kWitness).size(); at += 3) {
    put(whole);
    disk_.take_away(kLog);  // it has pages, too
    harm(kWitness, at, static_cast<unsigned char>(1u << (at % 8)));
    ASSERT_EQ(opening(), "");
    ASSERT_EQ(count(), 200) << at;
    stop();
  }
}

// G22
TEST_F(HarmTest, DigestsOfOtherDataAreForgotten) {
  open();
  write(200);
  stop();
  const Files first = files();
  Disk other(random_);
  {
    SimulatedStore store(other);
    for (std::int64_t id = 1; id < 300; ++id) {
      const auto job = [id](Connection& c) -> Result<int> {
        c.run("INSERT INTO row(id, body) VALUES(?1, ?2)", id, std::string(700, 'o'));
        return 0;
      };
      ASSERT_TRUE(store.wait(store->write<int>(job)));
    }
  }
  disk_.replace(kWitness, other.contents(kWitness).value());

  EXPECT_TRUE(opening().contains("not the database that belfry.db-witness belongs to"));
  open(/*accept_loss=*/true);
  EXPECT_EQ(count(), 200);
}

// G22
TEST_F(HarmTest, DataThatAnOlderBelfryMadeOpensWithoutAWordAndIsCoveredAsItIsWritten) {
  open();
  write(200);
  const auto forget = [](Connection& c) -> Result<int> {
    c.execute("DROP TABLE epoch");
    c.execute("DELETE FROM schema_version WHERE part = 'store'");
    return 0;
  };
  ASSERT_TRUE(store_->wait((*store_)->write<int>(forget)));
  kill();
  disk_.take_away(kWitness);

  EXPECT_EQ(opening(), "");
  EXPECT_EQ(count(), 200);
  write(1);
  stop();
  const std::string log = contents(kLog);
  open();
  const PageReport report = (*store_)->connection_before_start().examine_pages();
  EXPECT_GT(report.covered, 0);
  EXPECT_EQ(report.harmed, 0);
  write(100);
  kill();
  harm(kLog, 32 + 5 * kFrame + 100);
  EXPECT_NE(opening(), "");
}

// G22
RC_GTEST_PROP(HarmProperty, WhateverIsHarmedIsNoticedOrWithoutEffect, ()) {
  SeededRandom random(*rc::gen::arbitrary<std::uint64_t>());
  Disk disk(random);
  const auto lives = *rc::gen::inRange(1, 4);
  std::int64_t last = 0;
  const auto open = [&] {
    SimulatedStore::Options options;
    options.store.checkpoint_pages = 24;
    return std::make_unique<SimulatedStore>(disk, std::move(options));
  };
  for (int life = 0; life < lives; ++life) {
    auto store = open();
    const auto count = *rc::gen::inRange(1, 60);
    for (int i = 0; i < count; ++i) {
      const auto job = [id = ++last](Connection& c) -> Result<int> {
        c.run("INSERT INTO row(id, body) VALUES(?1, ?2)", id, body_of(id));
        return 0;
      };
      RC_ASSERT(store->wait((*store)->write<int>(job)).has_value());
    }
    const bool killed = *rc::gen::arbitrary<bool>();
    if (killed) disk.halt();
    store.reset();
    if (killed) disk.reboot();
  }
  const std::string name = *rc::gen::element<std::string>(kDatabase, kLog, kWitness);
  std::string bytes = disk.contents(name).value();
  const auto at = static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, static_cast<std::int64_t>(bytes.size())));
  switch (*rc::gen::inRange(0, 5)) {
    case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << *rc::gen::inRange(0, 8))); break;
    case 1: bytes.replace(at / 512 * 512, 512, std::string(512, '\0')); break;
    case 2: bytes.resize(at); break;
    case 3: bytes.replace(at / 4096 * 4096, 4096, std::string(4096, static_cast<char>(random.next()))); break;
    default: std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
  }
  disk.replace(name, bytes);

  try {
    auto store = open();
    const auto read = [last](Connection& c) -> Result<bool> {
      std::int64_t next = 0;
      auto found = c.query("SELECT id, body FROM row ORDER BY id");
      while (found.next())
        if (found.integer(0) != ++next || found.text(1) != body_of(next)) return false;
      return next == last;
    };
    const auto whole = store->wait((*store)->read<bool>(read));
    RC_ASSERT(!whole || *whole);
  } catch (const Fault&) {
    RC_SUCCEED("noticed");
  }
}

}  // namespace
}  // namespace belfry::store
