// The tables of this folder: cases_en.txt and cases_zh.txt hold what texts mean, timeless_*.txt texts that mean no time.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "belfry/when/when.h"

namespace belfry::when {
namespace {

std::string path_of(const std::string& name) { return std::string(BELFRY_SOURCE_DIR) + "/src/belfry/when/" + name; }

struct Case {
  int line = 0;
  std::string now;
  std::string zone;
  std::string text;
  std::string span;  // empty: the whole text
  std::string kind;
  std::string value;
  std::string rule;
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::size_t at = 0;
  while (true) {
    const std::size_t bar = line.find(" | ", at);
    fields.push_back(line.substr(at, bar == std::string::npos ? bar : bar - at));
    if (bar == std::string::npos) return fields;
    at = bar + 3;
  }
}

void take_brackets(Case& one) {
  const std::size_t open = one.text.find('[');
  const std::size_t close = one.text.find(']');
  if (open == std::string::npos || close == std::string::npos) return;
  one.span = one.text.substr(open + 1, close - open - 1);
  one.text.erase(close, 1);
  one.text.erase(open, 1);
}

std::vector<Case> read_cases(const std::string& name) {
  std::ifstream file(path_of(name));
  std::vector<Case> cases;
  Case one;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("@ ")) {
      const std::size_t space = line.find(' ', 2);
      one.now = line.substr(2, space - 2);
      one.zone = line.substr(space + 1);
      continue;
    }
    const auto fields = split(line);
    if (fields.size() < 3) {
      ADD_FAILURE() << name << ":" << number << ": " << line;
      continue;
    }
    one.line = number;
    one.text = fields[0];
    one.span.clear();
    one.kind = fields[1];
    one.value = fields[2];
    one.rule = fields.size() > 3 ? fields[3] : "";
    take_brackets(one);
    cases.push_back(one);
  }
  return cases;
}

// A reading in the form of the tables.
std::string shown(const Case& one, const Zone& zone, const Result<Reading>& reading) {
  if (!reading) return "refused | " + std::string(word(reading.error().code));
  const auto local = [&](WallTime at, bool day) {
    std::string iso = zone.iso(at);
    if (day) return iso.substr(0, 10);
    const bool with_offset = one.value.size() == 22;  // 2026-11-01T01:30-05:00
    if (with_offset) return iso.substr(0, 16) + iso.substr(19);
    iso = iso.substr(0, 19);
    return iso.ends_with(":00") ? iso.substr(0, 16) : iso;
  };
  std::string text = std::string(word(reading->kind)) + " | ";
  const bool days = reading->kind == ReadingKind::date || (reading->kind == ReadingKind::range && reading->day_only);
  text += local(reading->at, days);
  if (reading->end) text += " .. " + local(days ? *reading->end - Millis{1} : *reading->end, days);
  if (reading->rule) text += " | " + to_text(*reading->rule);
  return text;
}

std::string wanted(const Case& one) {
  return one.kind + " | " + one.value + (one.rule.empty() ? "" : " | " + one.rule);
}

void expect_all(const std::string& name) {
  const std::vector<Case> cases = read_cases(name);
  const auto refusals = std::count_if(cases.begin(), cases.end(), [](const Case& c) { return c.kind == "refused"; });
  EXPECT_GE(cases.size() - static_cast<std::size_t>(refusals), 400u);
  EXPECT_GE(refusals, 60);
  for (const Case& one : cases) {
    const Zone zone = Zone::named(one.zone).value();
    const auto reading = read(one.text, {parse_iso(one.now).value(), zone});
    EXPECT_EQ(shown(one, zone, reading), wanted(one)) << name << ":" << one.line << ": " << one.text;
    if (reading && !one.span.empty())
      EXPECT_EQ(one.text.substr(reading->begin_byte, reading->end_byte - reading->begin_byte), one.span)
          << name << ":" << one.line << ": " << one.text;
  }
}

// W
TEST(WhenTables, EveryEnglishLineIsReadAsItIsMeant) { expect_all("cases_en.txt"); }

// W
TEST(WhenTables, EveryChineseLineIsReadAsItIsMeant) { expect_all("cases_zh.txt"); }

void expect_hardly_any_time(const std::string& name) {
  std::ifstream file(path_of(name));
  const Zone zone = Zone::named("Asia/Shanghai").value();
  const WallTime now = parse_iso("2026-11-18T15:20:00+08:00").value();
  int sentences = 0;
  std::vector<std::string> taken;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    ++sentences;
    const auto reading = read(line, {now, zone});
    if (reading)
      taken.push_back(line + " -> " + line.substr(reading->begin_byte, reading->end_byte - reading->begin_byte));
    else if (reading.error().code != Errc::not_a_time)
      taken.push_back(line + " -> " + reading.error().detail);
  }
  EXPECT_GE(sentences, 1'000);
  std::string all;
  for (const std::string& one : taken) all += one + "\n";
  EXPECT_LE(taken.size(), static_cast<std::size_t>(sentences) / 200) << all;
}

// W
TEST(WhenTables, HardlyAnyEnglishSentenceWithoutATimeIsTakenForOne) { expect_hardly_any_time("timeless_en.txt"); }

// W
TEST(WhenTables, HardlyAnyChineseSentenceWithoutATimeIsTakenForOne) { expect_hardly_any_time("timeless_zh.txt"); }

}  // namespace
}  // namespace belfry::when
