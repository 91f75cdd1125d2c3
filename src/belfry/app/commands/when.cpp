// `belfry when`: reads a time expression without a server, for people and, line by line, for programs.
#include <cstdio>
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/app/timezone.h"
#include "belfry/clock/real_clock.h"
#include "belfry/when/report.h"
#include "belfry/when/sentence.h"

namespace belfry::app {
namespace {

struct Flags {
  std::vector<std::string> words;
  std::string now;
  std::string timezone;
  std::string language;
  bool strict = false;
  bool json = false;
  bool batch = false;
};

struct Question {
  WallTime now;
  when::Zone zone;
  when::ZoneSource source;
  when::Language language;
  bool strict;

  when::Reference reference() const {
    return {.now = now, .zone = zone, .language = language, .zone_source = source, .strict = strict};
  }
};

WallTime now_of(const Flags& flags) {
  if (flags.now.empty()) return round_down(read_real_clocks().wall);
  const auto now = parse_iso(flags.now);
  if (!now) refuse_usage(fmt::format("--now: {}", now.error().detail), now.error().code);
  return *now;
}

Question question_of(const Flags& flags) {
  Question question{.now = now_of(flags),
                    .zone = when::Zone::utc(),
                    .source = when::ZoneSource::given,
                    .language = when::Language::automatic,
                    .strict = flags.strict};
  if (flags.timezone.empty()) {
    question.zone = system_zone();
    question.source = when::ZoneSource::server;
  } else {
    auto zone = when::Zone::named(flags.timezone);
    if (!zone) refuse_usage(fmt::format("--tz: {}", zone.error().detail), zone.error().code);
    question.zone = *zone;
  }
  const auto language = when::parse_language(flags.language);
  if (!language) refuse_usage(fmt::format("--lang: {}", language.error().detail), language.error().code);
  question.language = *language;
  return question;
}

bool has_han(std::string_view text) {
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0xE4 && byte <= 0xE9) return true;
  }
  return false;
}

void print_for_people(const when::Reading& reading, const Question& question, std::string_view text) {
  const bool chinese =
      question.language == when::Language::chinese || (question.language == when::Language::automatic && has_han(text));
  const when::Language language = chinese ? when::Language::chinese : when::Language::english;
  std::printf("%s\n", when::sentence(reading, language).c_str());
  const auto line = [](const char* label, const std::string& value) {
    std::printf("  %-9s %s\n", label, value.c_str());
  };
  const auto zoned = [&](WallTime at) { return reading.zone.iso(at); };
  line(reading.rule ? "next" : "at",
       fmt::format("{}  {}", zoned(reading.at), when::distance(reading.at, question.now, language)));
  if (reading.end) line("until", zoned(*reading.end));
  if (reading.rule) line("rule", to_text(*reading.rule));
  line("kind", std::string(word(reading.kind)) + (reading.past ? ", in the past" : ""));
  line("zone", fmt::format("{} ({})", reading.zone.name(), word(reading.zone_source)));
  const std::string_view used = text.substr(reading.begin_byte, reading.end_byte - reading.begin_byte);
  if (used.size() != text.size()) line("read", printable(used));
  for (const WallTime other : reading.alternatives) line("or", zoned(other));
}

// One line of a batch; what is missing in it is taken from the flags.
std::string answer_line(const std::string& line, const Question& defaults) {
  json::Writer writer;
  writer.object();
  const auto refused = [&](const Error& error) {
    writer.field("ok", false).field("error", word(error.code)).field("message", error.detail);
    return writer.end().take();
  };
  const auto value = json::parse(line);
  if (!value) return refused(value.error());
  if (value->kind != json::Kind::object) return refused({Errc::invalid_json, "a line is not an object"});
  if (const auto id = json::find(*value, "id")) writer.key("id").raw(id->raw);
  const auto text_of = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = json::find(*value, name);
    return found && found->kind == json::Kind::string ? std::optional(json::text(*found)) : std::nullopt;
  };
  for (const std::string_view name : {"text", "ref", "tz", "lang"}) {
    const auto found = json::find(*value, name);
    if (found && found->kind != json::Kind::string && found->kind != json::Kind::null)
      return refused({Errc::invalid_argument, fmt::format("{} is not a string", name)});
  }
  Question question = defaults;
  if (const auto now = text_of("ref")) {
    const auto parsed = parse_iso(*now);
    if (!parsed) return refused({parsed.error().code, "ref: " + parsed.error().detail});
    question.now = *parsed;
  }
  if (const auto name = text_of("tz")) {
    const auto zone = when::Zone::named(*name);
    if (!zone) return refused(zone.error());
    question.zone = *zone;
    question.source = when::ZoneSource::given;
  }
  if (const auto name = text_of("lang")) {
    const auto language = when::parse_language(*name);
    if (!language) return refused(language.error());
    question.language = *language;
  }
  const auto text = text_of("text");
  if (!text) return refused({Errc::invalid_argument, "text is missing: the time to read"});
  const auto reading = when::read(*text, question.reference());
  if (!reading) return refused(reading.error());
  writer.field("ok", true);
  when::write_reading(writer, *reading, *text);
  return writer.end().take();
}

void run_batch(const Question& defaults) {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::cout << answer_line(line, defaults) << '\n';
    // Whoever asks line by line waits for each answer; a file is read on first.
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
  if (std::cin.bad()) refuse_usage("stdin cannot be read");
}

void run(const Flags& flags) {
  const Question question = question_of(flags);
  if (flags.batch) {
    if (!flags.words.empty()) refuse_usage("--batch reads its texts from stdin; there is one on the line, too");
    return run_batch(question);
  }
  if (flags.words.empty()) refuse_usage("the text is missing: a time like \"tomorrow at 9\" or 明天9点");
  const std::string text = fmt::format("{}", fmt::join(flags.words, " "));
  const auto reading = when::read(text, question.reference());
  if (!reading) refuse(reading.error().code, reading.error().detail);
  if (!flags.json) return print_for_people(*reading, question, text);
  json::Writer writer;
  writer.object().field("ok", true);
  when::write_reading(writer, *reading, text);
  print_json(writer.end().take());
}

}  // namespace

void add_when(CLI::App& app) {
  CLI::App* const command = add_command(app, "when", "Read a time: \"tomorrow at 9\", 明天早上9点, 2027-01-01T09:00Z");
  auto flags = std::make_shared<Flags>();
  command->add_option("text", flags->words, "What to read; several words are one text");
  command->add_option("--now", flags->now, "Read it as if it were this instant [now]")->type_name("ISO");
  command->add_option("--tz", flags->timezone, "Zone: Asia/Shanghai, UTC, +08:00 [that of this machine]")
      ->type_name("ZONE");
  command->add_option("--lang", flags->language, "en, zh or auto [auto: by the script]")->type_name("LANG");
  command->add_flag("--strict", flags->strict, "Refuse what can be read in two ways");
  command->add_flag("--json", flags->json, "Print the reading as JSON");
  command->add_flag("--batch", flags->batch, "Read one JSON object a line from stdin, answer one a line");
  command->footer(
      "Says the time back, how far away it is, and what else it could mean. Ends with 1 if the text is no time or one\n"
      "that does not exist (25:00, 2月30日).\n"
      "A line of a batch is {\"id\",\"text\",\"ref\",\"tz\",\"lang\"}; its answer {\"id\",\"ok\":true,\"at\",\"kind\",…} or\n"
      "{\"id\",\"ok\":false,\"error\",\"message\"}.");
  on_run(command, [flags] { run(*flags); });
}

}  // namespace belfry::app
