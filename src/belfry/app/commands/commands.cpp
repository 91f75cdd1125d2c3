#include "belfry/app/commands/commands.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/base/json.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/message_id.h"
#include "belfry/bus/recipients.h"

namespace belfry::app {
namespace {

void refuse_flags_in_front(const CLI::App& command) {
  for (const CLI::App* parent = command.get_parent(); parent; parent = parent->get_parent()) {
    for (const CLI::Option* option : parent->get_options())
      if (option->count() > 0)
        refuse_usage(fmt::format("{} stands in front of \"{}\", where it has no effect; write it behind",
                                 option->get_name(), command.get_name()));
  }
}

// Messages may quote what was typed: a line stays one line.
std::string in_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

}  // namespace

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* const command = app.add_subcommand(name, description);
  command->set_version_flag("--version", "belfry " BELFRY_VERSION);
  return command;
}

void on_run(CLI::App* command, std::function<void()> work) {
  command->callback([command, work = std::move(work)] {
    if (!command->get_subcommands().empty()) return;
    refuse_flags_in_front(*command);
    work();
  });
}

void refuse(Errc code, std::string message, int exit_code) { throw Refusal{{code, std::move(message)}, exit_code}; }

void refuse_usage(std::string message, Errc code) { refuse(code, std::move(message), kExitUsage); }

int print_refusal(const Refusal& refusal, bool json) {
  const std::string message = in_one_line(refusal.error.detail);
  if (json) {
    json::Writer writer;
    writer.object().field("error", word(refusal.error.code)).field("message", message);
    std::printf("%s\n", writer.end().str().c_str());
  }
  // Whoever cannot be told on stdout is told on stderr.
  if (all_printed() && json) return refusal.exit_code;
  const bool named = refusal.exit_code == kExitRefused;  // the word is for looking it up in docs/errors.md
  std::fprintf(stderr, "error: %s\n",
               (named ? fmt::format("{} ({})", message, word(refusal.error.code)) : message).c_str());
  return refusal.exit_code;
}

bool all_printed() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

std::string read_stdin() {
  std::string text;
  std::array<char, 16 << 10> piece;
  std::size_t count = 0;
  while ((count = std::fread(piece.data(), 1, piece.size(), stdin)) > 0) text.append(piece.data(), count);
  if (std::ferror(stdin) != 0)
    refuse_usage(fmt::format("stdin cannot be read: {}", std::generic_category().message(errno)));
  return text;
}

CLI::Validator number_from(int least, int most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    if (read.ec == std::errc{} && read.ptr == end && number >= least && number <= most) return "";
    return fmt::format("\"{}\" is not a whole number from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

void check_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_min() == 0) continue;  // a flag without a value
    const bool path = option->get_type_name() == "FILE" || option->get_type_name() == "DIR";
    // An empty message is a message; ids among the arguments have a check of their own.
    const bool may_be_empty = option->get_positional();
    option->check(CLI::Validator(
        [path, may_be_empty](const std::string& text) -> std::string {
          if (text.empty() && !may_be_empty) return "the value is empty";
          return path || is_utf8(text) ? "" : "the value is not UTF-8";
        },
        ""));
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) check_values(*command);
}

void check_name_argument(const std::string& what, const std::string& name) {
  if (const auto fits = bus::check_id(what, name); !fits) refuse_usage(fits.error().detail, fits.error().code);
}

void check_message_argument(const std::string& id) {
  if (const auto fits = bus::parse_message_id(id); !fits) refuse_usage(fits.error().detail, fits.error().code);
}

}  // namespace belfry::app
