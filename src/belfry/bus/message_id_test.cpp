#include "belfry/bus/message_id.h"

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::bus {
namespace {

constexpr std::int64_t kSequenceMax = (std::int64_t{1} << 48) - 1;
constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";

RC_GTEST_PROP(MessageId, TextGivesTheIdBack, ()) {
  const MessageId id{*rc::gen::inRange<std::int64_t>(1, kSequenceMax + 1)};

  const std::string text = to_text(id);

  RC_ASSERT(text.size() == 13u);
  RC_ASSERT(text.find_first_not_of(kAlphabet) == std::string::npos);
  RC_ASSERT(parse_message_id(text).value() == id);
}

TEST(MessageId, FirstAndLastSequenceHaveAText) {
  EXPECT_EQ(parse_message_id(to_text({1})).value().sequence, 1);
  EXPECT_EQ(parse_message_id(to_text({kSequenceMax})).value().sequence, kSequenceMax);
  EXPECT_FALSE(parse_message_id(to_text({0})).has_value());
  EXPECT_FALSE(parse_message_id(to_text({kSequenceMax + 1})).has_value());
}

TEST(MessageId, NeighboursLookNothingAlike) {
  std::set<std::string> fronts;
  for (std::int64_t sequence = 1; sequence <= 1'000; ++sequence) fronts.insert(to_text({sequence}).substr(0, 5));
  EXPECT_GT(fronts.size(), 990u);
}

// Sixteen bits of check: of a million mistyped ids about fifteen name something.
TEST(MessageId, MistypedIdNamesNothing) {
  int tried = 0;
  int accepted = 0;
  for (std::int64_t sequence = 1; sequence <= 200; ++sequence) {
    const std::string right = to_text({sequence});
    for (std::size_t at = 0; at < right.size(); ++at) {
      for (const char c : kAlphabet) {
        std::string wrong = right;
        wrong[at] = c;
        if (wrong == right) continue;
        ++tried;
        accepted += parse_message_id(wrong) ? 1 : 0;
      }
    }
    for (std::size_t at = 0; at + 1 < right.size(); ++at) {
      std::string swapped = right;
      std::swap(swapped[at], swapped[at + 1]);
      if (swapped == right) continue;
      ++tried;
      accepted += parse_message_id(swapped) ? 1 : 0;
    }
  }
  EXPECT_GT(tried, 80'000);
  EXPECT_LT(accepted, 10);
}

TEST(MessageId, RefusesWhatIsNoId) {
  const std::string id = to_text({42});
  for (const std::string& text :
       {std::string(), id.substr(1), id + "0", std::string(13, 'i'), std::string(13, 'z'), std::string(13, '0'),
        "A" + id.substr(1), id.substr(0, 12) + " ", std::string(13, '\0'), std::string(13, '\xFF')}) {
    const auto parsed = parse_message_id(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid_id) << text;
  }
}

}  // namespace
}  // namespace belfry::bus
