#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/net/url.h"

namespace belfry::app {
namespace {

struct Flags {
  Client client;
  std::string id;
  std::string kind = "external";
  std::string prompt_file;
  std::string model;
  std::vector<std::string> tools;
  std::string groups;
  bool memory = false;
  int limit = 20;
};

std::string read_prompt(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) refuse(Errc::invalid_argument, fmt::format("cannot read the prompt {}", path));
  return text.str();
}

void write_profile(json::Writer& writer, const Flags& flags) {
  const bool any = !flags.prompt_file.empty() || !flags.model.empty() || !flags.tools.empty() || flags.memory ||
                   !flags.groups.empty();
  if (any && flags.kind != "model")
    refuse_usage("--prompt, --model, --tools, --groups and --memory are for agents that think: --kind model");
  if (!flags.prompt_file.empty()) writer.field("prompt", read_prompt(flags.prompt_file));
  if (!flags.model.empty()) writer.field("model", flags.model);
  if (!flags.groups.empty()) writer.field("groups", flags.groups);
  if (flags.memory) writer.field("memory", true);
  if (flags.tools.empty()) return;
  writer.key("tools").array();
  for (const std::string& tool : flags.tools) writer.value(tool);
  writer.end();
}

void add(Flags& flags) {
  json::Writer writer;
  writer.object().field("id", flags.id).field("kind", flags.kind);
  write_profile(writer, flags);
  const std::string answer = flags.client.post("/v1/agents", writer.end().take());
  if (flags.client.json()) return print_json(answer);
  std::printf("%s can receive now\n", Answer(answer).text("id").c_str());
}

void remove(Flags& flags) {
  const std::string answer = flags.client.remove("/v1/agents/" + net::percent_encoded(flags.id));
  if (flags.client.json()) return print_json(answer);
  std::printf("%s was removed; messages that waited for it are dead letters\n", Answer(answer).text("id").c_str());
}

void set_stopped(Flags& flags, bool stopped) {
  const std::string answer = flags.client.post(
      fmt::format("/v1/agents/{}:{}", net::percent_encoded(flags.id), stopped ? "stop" : "start"), "{}");
  if (flags.client.json()) return print_json(answer);
  std::printf(stopped ? "%s is stopped; its messages wait\n" : "%s is running\n", Answer(answer).text("id").c_str());
}

void turns(Flags& flags) {
  const std::string answer =
      flags.client.get(fmt::format("/v1/agents/{}/turns?limit={}", net::percent_encoded(flags.id), flags.limit));
  if (flags.client.json()) return print_json(answer);
  for (const Answer& one : Answer(answer).list("turns"))
    std::printf("%s  %-9s  from %-16s %s\n", one.text("beganAt").c_str(), one.text("state").c_str(),
                one.text("from").c_str(), printable(one.text("why")).c_str());
}

void stop(Flags& flags) { set_stopped(flags, true); }
void start(Flags& flags) { set_stopped(flags, false); }

void print_line(const Answer& one) {
  std::printf("%-32s %10lld %10lld %10lld%s\n", one.text("id").c_str(), static_cast<long long>(one.number("pending")),
              static_cast<long long>(one.number("delayed")), static_cast<long long>(one.number("inFlight")),
              one.flag("stopped") ? "  stopped" : "");
}

// All pages; with --json as one document, as if there were no pages.
void list(Flags& flags) {
  json::Writer writer;
  writer.object().key("agents").array();
  std::string after;
  bool any = false;
  do {
    const Answer page(flags.client.get("/v1/agents" + (after.empty() ? "" : "?after=" + net::percent_encoded(after))));
    for (const Answer& one : page.list("agents")) {
      if (flags.client.json()) {
        writer.raw(one.raw());
        continue;
      }
      if (!std::exchange(any, true))
        std::printf("%-32s %10s %10s %10s\n", "recipient", "pending", "delayed", "in flight");
      print_line(one);
    }
    after = page.text("next");
  } while (!after.empty());
  if (flags.client.json()) return print_json(writer.end().end().take());
  if (!any) std::fprintf(stderr, "nobody yet: belfry agents add NAME\n");
}

void add_profile_options(CLI::App& command, Flags& flags) {
  command.add_option("--kind", flags.kind,
                     "external: receives over HTTP (the default); model: thinks with a language model;"
                     " echo: says back what it is told");
  command.add_option("--prompt", flags.prompt_file, "A file that says what it is (model)")->type_name("FILE");
  command.add_option("--model", flags.model, "Another model than the configured one (model)");
  command.add_option("--tools", flags.tools, "The only tools that it may use, with commas between them (model)")
      ->delimiter(',');
  command.add_option("--groups", flags.groups, "When it speaks in groups (model)")->type_name("addressed|named|never");
  command.add_flag("--memory", flags.memory, "It keeps short facts about people (model)");
}

CLI::App* add_one(CLI::App& parent, const std::string& name, const std::string& description, bool with_id,
                  void (*run)(Flags&)) {
  CLI::App* const command = add_command(parent, name, description);
  auto flags = std::make_shared<Flags>();
  if (with_id) command->add_option("id", flags->id, "1 to 64 of a-z 0-9 _ . -")->required();
  if (run == add) add_profile_options(*command, *flags);
  if (run == turns) command->add_option("--limit", flags->limit, "How many, the newest first [20]");
  flags->client.add_options(*command);
  on_run(command, [flags, run, with_id] {
    if (with_id) check_name_argument("the id", flags->id);
    run(*flags);
  });
  return command;
}

}  // namespace

void add_agents(CLI::App& app) {
  CLI::App* const command = add_command(app, "agents", "Who can receive");
  // Alone it lists, like `messages`.
  command->require_subcommand(0, 1);
  auto flags = std::make_shared<Flags>();
  flags->client.add_options(*command);
  on_run(command, [flags] { list(*flags); });
  add_one(*command, "add", "Let somebody receive", true, add);
  add_one(*command, "list", "Everybody, with counts", false, list);
  add_one(*command, "turns", "What an agent that thinks did with its messages, and why", true, turns);
  add_one(*command, "stop", "Hand it no more messages; they wait for it (agents that Belfry runs)", true, stop);
  add_one(*command, "start", "Hand it messages again", true, start);
  add_one(*command, "remove", "Take the name away; what waits for it goes to the dead letters", true, remove);
}

}  // namespace belfry::app
