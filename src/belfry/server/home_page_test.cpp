#include "belfry/server/home_page.h"

#include <gtest/gtest.h>

namespace belfry::server {
namespace {

TEST(HomePage, ChoosesTheLanguageThatIsPreferred) {
  EXPECT_EQ(choose_language("", ""), Language::english);
  EXPECT_EQ(choose_language("", "zh-CN,zh;q=0.9,en;q=0.8"), Language::chinese);
  EXPECT_EQ(choose_language("", "en-US,en;q=0.9,zh;q=0.8"), Language::english);
  EXPECT_EQ(choose_language("", "de, zh;q=0.7, en;q=0.2"), Language::chinese);
  EXPECT_EQ(choose_language("", "de"), Language::english);
  EXPECT_EQ(choose_language("", "zh;q=abc"), Language::chinese);
  EXPECT_EQ(choose_language("lang=zh", "en"), Language::chinese);
  EXPECT_EQ(choose_language("lang=en", "zh"), Language::english);
}

TEST(HomePage, QuotesWhatCameFromOutside) {
  HomePage page;
  page.address = "<script>alert('x')</script>";
  const std::string html = home_page(page, Language::english);
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
}

TEST(HomePage, ItsExamplesEndWithAnAckAndCarryATokenWhereOneIsNeeded) {
  HomePage page;
  const std::string open = home_page(page, Language::english);
  page.needs_token = true;
  const std::string closed = home_page(page, Language::chinese);

  for (const std::string& html : {open, closed}) EXPECT_NE(html.find("worker:ack"), std::string::npos);
  EXPECT_EQ(open.find("Authorization"), std::string::npos);
  EXPECT_NE(closed.find("-H &quot;Authorization: Bearer $TOKEN&quot;"), std::string::npos);
}

TEST(HomePage, LeadsToItselfInTheOtherLanguage) {
  EXPECT_NE(home_page({}, Language::english).find("href=\"/about?lang=zh\""), std::string::npos);
  EXPECT_NE(home_page({}, Language::chinese).find("href=\"/about?lang=en\""), std::string::npos);
}

TEST(HomePage, ShowsCountsAndHowManyMoreThereAre) {
  HomePage page;
  page.totals.live.pending = 1'234'567;
  page.recipients.push_back({"worker", {.pending = 12, .delayed = 3'456, .in_flight = 0}});
  page.recipients_in_all = 60'000;
  const std::string html = home_page(page, Language::english);
  for (const char* wanted : {"1,234,567", "worker", "3,456", "The first 1 of 60,000."})
    EXPECT_NE(html.find(wanted), std::string::npos) << wanted;
}

}  // namespace
}  // namespace belfry::server
