// The official JSON Schema test suite, as Debian ships it (libtest-json-schema-acceptance-perl). Every case of both drafts
// is run; what is not claimed stands in kUnclaimed with its reason, and must really fail, so that the list cannot rot.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/tool/schema.h"

namespace belfry::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSuite = "/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests";

// Cases whose full name begins with `prefix`: "draft/file.json/group/case".
struct Unclaimed {
  std::string_view prefix;
  std::string_view reason;
};

constexpr std::string_view kRemote = "it needs another document, and those are never fetched";
constexpr std::string_view kFormat = "format is an annotation, as the standard has it by default";
constexpr std::string_view kVocabulary = "its metaschema is a document of its own, and those are never fetched";
constexpr std::string_view kContent = "contentEncoding and contentMediaType are annotations, as the standard has it";

constexpr Unclaimed kUnclaimed[] = {
    {"draft2020-12/refRemote.json/", kRemote},
    {"draft2020-12/optional/cross-draft.json/", kRemote},
    {"draft2020-12/dynamicRef.json/strict-tree schema, guards against misspelled properties/", kRemote},
    {"draft2020-12/dynamicRef.json/tests for implementation dynamic anchor and reference link/", kRemote},
    {"draft2020-12/dynamicRef.json/$ref and $dynamicAnchor are independent of order - $defs first/", kRemote},
    {"draft2020-12/dynamicRef.json/$ref and $dynamicAnchor are independent of order - $ref first/", kRemote},
    {"draft2020-12/vocabulary.json/", kVocabulary},
    {"draft2020-12/optional/format-assertion.json/", kVocabulary},
    {"draft2020-12/optional/ecmascript-regex.json/\\a is not an ECMA 262 control escape/", kFormat},
    {"draft2020-12/optional/format/date-time.json/", kFormat},
    {"draft2020-12/optional/format/date.json/", kFormat},
    {"draft2020-12/optional/format/duration.json/", kFormat},
    {"draft2020-12/optional/format/email.json/", kFormat},
    {"draft2020-12/optional/format/hostname.json/", kFormat},
    {"draft2020-12/optional/format/idn-email.json/", kFormat},
    {"draft2020-12/optional/format/idn-hostname.json/", kFormat},
    {"draft2020-12/optional/format/ipv4.json/", kFormat},
    {"draft2020-12/optional/format/ipv6.json/", kFormat},
    {"draft2020-12/optional/format/iri-reference.json/", kFormat},
    {"draft2020-12/optional/format/iri.json/", kFormat},
    {"draft2020-12/optional/format/json-pointer.json/", kFormat},
    {"draft2020-12/optional/format/regex.json/", kFormat},
    {"draft2020-12/optional/format/relative-json-pointer.json/", kFormat},
    {"draft2020-12/optional/format/time.json/", kFormat},
    {"draft2020-12/optional/format/uri-reference.json/", kFormat},
    {"draft2020-12/optional/format/uri-template.json/", kFormat},
    {"draft2020-12/optional/format/uri.json/", kFormat},
    {"draft2020-12/optional/format/uuid.json/", kFormat},
    {"draft7/refRemote.json/", kRemote},
    {"draft7/optional/cross-draft.json/", kRemote},
    {"draft7/optional/content.json/", kContent},
    {"draft7/optional/format/date-time.json/", kFormat},
    {"draft7/optional/format/date.json/", kFormat},
    {"draft7/optional/format/email.json/", kFormat},
    {"draft7/optional/format/hostname.json/", kFormat},
    {"draft7/optional/format/idn-email.json/", kFormat},
    {"draft7/optional/format/idn-hostname.json/", kFormat},
    {"draft7/optional/format/ipv4.json/", kFormat},
    {"draft7/optional/format/ipv6.json/", kFormat},
    {"draft7/optional/format/iri-reference.json/", kFormat},
    {"draft7/optional/format/iri.json/", kFormat},
    {"draft7/optional/format/json-pointer.json/", kFormat},
    {"draft7/optional/format/regex.json/", kFormat},
    {"draft7/optional/format/relative-json-pointer.json/", kFormat},
    {"draft7/optional/format/time.json/", kFormat},
    {"draft7/optional/format/uri-reference.json/", kFormat},
    {"draft7/optional/format/uri-template.json/", kFormat},
    {"draft7/optional/format/uri.json/", kFormat},
};

const Unclaimed* unclaimed(std::string_view name) {
  for (const Unclaimed& entry : kUnclaimed)
    if (name.starts_with(entry.prefix)) return &entry;
  return nullptr;
}

std::string read(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Case {
  std::string name;
  std::string schema;
  std::string instance;
  bool valid;
};

std::vector<Case> cases_in(const std::string& text, const std::string& file) {
  std::vector<Case> cases;
  for (const json::Value group : json::elements(json::parse(text).value())) {
    const std::string name = file + "/" + json::text(json::find(group, "description").value());
    for (const json::Value test : json::elements(json::find(group, "tests").value())) {
      cases.push_back({.name = name + "/" + json::text(json::find(test, "description").value()),
                       .schema = std::string(json::find(group, "schema")->raw),
                       .instance = std::string(json::find(test, "data")->raw),
                       .valid = json::boolean(json::find(test, "valid").value())});
    }
  }
  return cases;
}

std::vector<Case> cases_of(const std::string& draft) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(kSuite) / draft))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Case> cases;
  for (const fs::path& file : files)
    for (Case& one : cases_in(read(file), fs::relative(file, kSuite).string())) cases.push_back(std::move(one));
  return cases;
}

// Empty if we agree with the suite.
std::string disagreement(const Case& one, Dialect dialect) {
  const auto schema = Schema::compile(one.schema, dialect);
  if (!schema) return "the schema is refused: " + schema.error().detail;
  const auto violations = schema->check(json::parse(one.instance).value());
  if (violations.empty() == one.valid) return {};
  return violations.empty() ? "is taken, but should not be" : "is refused: " + sentence(violations.front());
}

void compare_with_suite(const std::string& draft, Dialect dialect, int least) {
  ASSERT_TRUE(fs::is_directory(fs::path(kSuite) / draft))
      << kSuite << " is not there; the package libtest-json-schema-acceptance-perl has it";
  int ran = 0;
  int passed = 0;
  std::vector<int> failed_of(std::size(kUnclaimed));
  std::vector<int> cases_of_entry(std::size(kUnclaimed));
  for (const Case& one : cases_of(draft)) {
    const std::string what = disagreement(one, dialect);
    if (const Unclaimed* const entry = unclaimed(one.name)) {
      ++cases_of_entry[static_cast<std::size_t>(entry - kUnclaimed)];
      if (!what.empty()) ++failed_of[static_cast<std::size_t>(entry - kUnclaimed)];
      continue;
    }
    ++ran;
    passed += what.empty() ? 1 : 0;
    EXPECT_EQ(what, "") << one.name << "\n  schema " << one.schema << "\n  value " << one.instance;
  }
  for (std::size_t i = 0; i < std::size(kUnclaimed); ++i) {
    if (!kUnclaimed[i].prefix.starts_with(draft)) continue;
    EXPECT_GT(failed_of[i], 0) << kUnclaimed[i].prefix << " passes in whole: claim it, take it off the list";
    std::cout << fmt::format("  not claimed: {:3} cases, {:3} of them fail: {} ({})\n", cases_of_entry[i], failed_of[i],
                             kUnclaimed[i].prefix, kUnclaimed[i].reason);
  }
  std::cout << fmt::format("{}: {} cases claimed, {} pass\n", draft, ran, passed);
  EXPECT_GE(ran, least) << "fewer cases than there were; is the suite complete?";
}

TEST(ToolSchema, AgreesWithTheOfficialSuiteOnDraft202012) {
  compare_with_suite("draft2020-12", Dialect::draft2020_12, 1'277);
}

TEST(ToolSchema, AgreesWithTheOfficialSuiteOnDraft7) { compare_with_suite("draft7", Dialect::draft7, 943); }

}  // namespace
}  // namespace belfry::tool
