#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/base/limits.h"
#include "belfry/base/utf8.h"
#include "belfry/clock/real_clock.h"

namespace belfry::app {
namespace {

struct Flags {
  Client client;
  std::vector<std::string> to;
  std::string from;
  std::string delay;
  std::string at;
  std::string expires;
  std::string key;
  std::string task;
  std::string content;
};

// The request is an object around the payload, which is a level of its own.
constexpr int kPayloadDepthMax = kJsonDepthMax - 1;

// A JSON object or list as it stands, anything else as {"text": …}.
std::string payload_of(const std::string& content) {
  const auto parsed = json::parse(content, kPayloadDepthMax);
  if (parsed && (parsed->kind == json::Kind::object || parsed->kind == json::Kind::array)) return content;
  if (!is_utf8(content)) refuse_usage("the message is not UTF-8");
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  const bool meant_as_json = first != std::string::npos && (content[first] == '{' || content[first] == '[');
  if (!parsed && meant_as_json) {
    if (parsed.error().detail.starts_with(json::kTooDeep))
      refuse_usage(fmt::format("the message is JSON with more than {} levels", kPayloadDepthMax), Errc::invalid_json);
    std::fprintf(stderr, "warning: sent as text: it is not JSON, %s\n", printable(parsed.error().detail).c_str());
  }
  json::Writer writer;
  return writer.object().field("text", content).end().take();
}

std::string message_from_stdin() {
  std::string text = read_stdin();
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string body_of(const Flags& flags) {
  json::Writer writer;
  writer.object().key("to");
  if (flags.to.size() == 1) {
    writer.value(flags.to.front());
  } else {
    writer.array();
    for (const std::string& one : flags.to) writer.value(one);
    writer.end();
  }
  writer.key("payload").raw(payload_of(flags.content == "-" ? message_from_stdin() : flags.content));
  if (!flags.from.empty()) writer.field("from", flags.from);
  if (!flags.task.empty()) writer.field("taskId", flags.task);
  if (!flags.key.empty()) writer.field("key", flags.key);
  if (!flags.delay.empty()) writer.field("delayMs", duration_argument("--delay", flags.delay).count());
  check_instant_argument("--expires", flags.expires);
  write_time_argument(writer, flags.at);
  if (!flags.expires.empty()) writer.field("expiresAt", flags.expires);
  return writer.end().take();
}

void print_sent(const Answer& sent, WallTime now) {
  std::string line = sent.text("messageId");
  if (sent.has("scheduledDeliveryTime"))
    line += fmt::format("  delivery at {}", readable_time(sent.text("scheduledDeliveryTime"), now));
  std::printf("%s\n", line.c_str());
  print_understood(sent);
  for (const std::string& warning : sent.texts("warnings"))
    std::fprintf(stderr, "warning: %s\n", printable(warning).c_str());
}

void send(Flags& flags) {
  for (const std::string& one : flags.to) check_name_argument("--to", one);
  if (!flags.from.empty()) check_name_argument("--from", flags.from);
  if (!flags.delay.empty() && !flags.at.empty()) refuse_usage("only one of --delay and --at may be given");
  const std::string answer = flags.client.post("/v1/messages", body_of(flags));
  const WallTime now = round_down(read_real_clocks().wall);
  const Answer sent(answer);
  bool refused = false;
  if (flags.client.json()) print_json(answer);
  for (const Answer& one : sent.list("results")) {
    refused = refused || one.has("error");
    if (flags.client.json()) continue;
    if (one.has("error")) {
      std::fprintf(stderr, "error: %s: %s (%s)\n", printable(one.text("to")).c_str(),
                   printable(one.text("message")).c_str(), one.text("error").c_str());
    } else {
      std::printf("%s: ", one.text("to").c_str());
      print_sent(one, now);
    }
  }
  if (!sent.has("results") && !flags.client.json()) print_sent(sent, now);
  if (sent.has("results") && !flags.client.json()) print_understood(sent);
  if (refused) throw CLI::RuntimeError(kExitRefused);
}

}  // namespace

void add_send(CLI::App& app) {
  CLI::App* const command = add_command(app, "send", "Send a message, now or later");
  auto flags = std::make_shared<Flags>();
  command->add_option("message", flags->content, "What to send: JSON or text; - reads it from stdin")->required();
  command->add_option("--to", flags->to, "Recipient; repeatable")->required()->type_name("ID")->allow_extra_args(false);
  command->add_option("--from", flags->from, "Sender [user]")->type_name("ID");
  command
      ->add_option("--delay", flags->delay,
                   "Deliver after this time: 90s, 5m, 1h30m, 1.5h, 2d, 1500ms; without a unit, seconds")
      ->type_name("DURATION");
  command->add_option("--at", flags->at, "Deliver at this time instead: \"tomorrow at 9\", 明天9点, 2027-01-01T09:00Z")
      ->type_name("TIME");
  command->add_option("--expires", flags->expires, "Do not deliver after this instant")->type_name("ISO");
  command->add_option("--key", flags->key, "Name of this send: repeating it sends no second message")->type_name("KEY");
  command->add_option("--task", flags->task, "Task that the message belongs to; the recipient gets it too")
      ->type_name("ID");
  flags->client.add_options(*command);
  command->footer(
      "A JSON object or list is sent as it is. Everything else, numbers and quoted strings included, is text\n"
      "and is sent as {\"text\": …}.\n"
      "A duration is made of d, h, m, s and ms: 1h30m, 1.5h, 2d. A number alone is seconds.\n"
      "Prints the message's id, and for a delayed one its time of delivery.");
  on_run(command, [flags] { send(*flags); });
}

}  // namespace belfry::app
