// belfry tools: what can be called, calling it, and what was called.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/net/url.h"

namespace belfry::app {
namespace {

// A plugin may take its time before it answers.
constexpr Millis kToolWait{3'600'000};

struct Flags {
  Client client;
  std::string tool;
  std::string arguments = "{}";
  std::string agent;
  std::string session;
  std::string task;
  std::string call_id;
  int limit = 20;
};

// "to, payload; delayMs, quickReplies": what is needed first.
std::string parameters_of(const Answer& function) {
  const Answer parameters = function.object("parameters");
  const std::vector<std::string> needed = parameters.texts("required");
  std::string first;
  std::string rest;
  const std::string text = parameters.raw("properties");
  const auto properties = json::parse(text);
  if (!properties) return {};
  for (const json::Member& member : json::every_member(*properties)) {
    const bool is_needed = std::find(needed.begin(), needed.end(), member.key) != needed.end();
    std::string& list = is_needed ? first : rest;
    list += (list.empty() ? "" : ", ") + member.key;
  }
  return rest.empty() ? first : fmt::format("{}{}[{}]", first, first.empty() ? "" : " ", rest);
}

void list(Flags& flags) {
  const std::string answer = flags.client.get("/v1/tools");
  if (flags.client.json()) return print_json(answer);
  for (const Answer& one : Answer(answer).list("tools")) {
    const Answer function = one.object("function");
    std::printf("%s  %s\n  %s\n", function.text("name").c_str(), parameters_of(function).c_str(),
                printable(function.text("description")).c_str());
  }
}

void call(Flags& flags) {
  if (!json::parse(flags.arguments))
    refuse_usage(fmt::format("ARGUMENTS is not JSON: {}", json::parse(flags.arguments).error().detail));
  json::Writer writer;
  writer.object().key("arguments").raw(flags.arguments).key("context").object();
  if (!flags.agent.empty()) writer.field("agentId", flags.agent);
  if (!flags.session.empty()) writer.field("sessionId", flags.session);
  if (!flags.task.empty()) writer.field("taskId", flags.task);
  if (!flags.call_id.empty()) writer.field("callId", flags.call_id);
  const std::string answer = flags.client.post(fmt::format("/v1/tools/{}:call", net::percent_encoded(flags.tool)),
                                               writer.end().end().take(), kToolWait);
  print_json(flags.client.json() ? answer : Answer(answer).raw("result"));
}

void calls(Flags& flags) {
  std::string query = fmt::format("?limit={}", flags.limit);
  if (!flags.agent.empty()) query += "&agent=" + net::percent_encoded(flags.agent);
  if (!flags.session.empty()) query += "&session=" + net::percent_encoded(flags.session);
  const std::string answer = flags.client.get("/v1/calls" + query);
  if (flags.client.json()) return print_json(answer);
  const auto records = Answer(answer).list("calls");
  for (const Answer& one : records) {
    std::printf("%s  %-20s %-11s %s\n  %s\n", one.text("startedAt").c_str(), one.text("tool").c_str(),
                one.text("state").c_str(), one.text("agentId").c_str(), printable(one.raw("arguments")).c_str());
    const std::string result = one.raw(one.has("failure") ? "failure" : "result");
    if (!result.empty()) std::printf("  -> %s\n", printable(result).c_str());
  }
  if (records.empty()) std::fprintf(stderr, "no tool was called yet\n");
}

void add_context(CLI::App* command, Flags& flags) {
  command->add_option("--agent", flags.agent, "On whose behalf");
  command->add_option("--session", flags.session, "In which conversation");
}

}  // namespace

void add_tools(CLI::App& app) {
  CLI::App* const command = add_command(app, "tools", "What agents can call: list, call, and what was called");
  command->require_subcommand(0, 1);
  auto all = std::make_shared<Flags>();
  all->client.add_options(*command);
  on_run(command, [all] { list(*all); });

  CLI::App* const listing = add_command(*command, "list", "The tools, with their parameters (needed ones first)");
  auto list_flags = std::make_shared<Flags>();
  list_flags->client.add_options(*listing);
  on_run(listing, [list_flags] { list(*list_flags); });

  CLI::App* const calling = add_command(*command, "call", "Call a tool");
  auto flags = std::make_shared<Flags>();
  calling->add_option("tool", flags->tool, "Its name")->required();
  calling->add_option("arguments", flags->arguments, "A JSON object, such as '{\"to\":\"worker\",\"payload\":{}}'");
  add_context(calling, *flags);
  calling->add_option("--task", flags->task, "Of which task");
  calling->add_option("--call-id", flags->call_id,
                      "A name for this call: made again under it, it has no second effect");
  flags->client.add_options(*calling);
  on_run(calling, [flags] { call(*flags); });

  CLI::App* const record = add_command(*command, "calls", "What was called, newest first");
  auto record_flags = std::make_shared<Flags>();
  add_context(record, *record_flags);
  record->add_option("--limit", record_flags->limit, "How many at most")->check(number_from(1, 1'000));
  record_flags->client.add_options(*record);
  on_run(record, [record_flags] { calls(*record_flags); });
}

}  // namespace belfry::app
