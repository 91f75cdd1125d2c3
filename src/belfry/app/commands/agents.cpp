#include <cstdio>
#include <memory>

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
};

void add(Flags& flags) {
  json::Writer writer;
  writer.object().field("id", flags.id).field("kind", flags.kind);
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

void stop(Flags& flags) { set_stopped(flags, true); }
void start(Flags& flags) { set_stopped(flags, false); }

void list(Flags& flags) {
  std::string after;
  bool any = false;
  while (true) {
    const std::string answer =
        flags.client.get("/v1/agents" + (after.empty() ? "" : "?after=" + net::percent_encoded(after)));
    if (flags.client.json()) {
      print_json(answer);
    } else {
      for (const Answer& one : Answer(answer).list("agents")) {
        if (!std::exchange(any, true))
          std::printf("%-32s %10s %10s %10s\n", "recipient", "pending", "delayed", "in flight");
        std::printf("%-32s %10lld %10lld %10lld%s\n", one.text("id").c_str(),
                    static_cast<long long>(one.number("pending")), static_cast<long long>(one.number("delayed")),
                    static_cast<long long>(one.number("inFlight")), one.flag("stopped") ? "  stopped" : "");
      }
    }
    after = Answer(answer).text("next");
    if (after.empty()) break;
  }
  if (!any && !flags.client.json()) std::fprintf(stderr, "nobody yet: belfry agents add NAME\n");
}

CLI::App* add_one(CLI::App& parent, const std::string& name, const std::string& description, bool with_id,
                  void (*run)(Flags&)) {
  CLI::App* const command = add_command(parent, name, description);
  auto flags = std::make_shared<Flags>();
  if (with_id) command->add_option("id", flags->id, "1 to 64 of a-z 0-9 _ . -")->required();
  if (run == add)
    command->add_option("--kind", flags->kind,
                        "external: receives over HTTP (the default); echo: run by Belfry, says back what it is told");
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
  add_one(*command, "stop", "Hand it no more messages; they wait for it (agents that Belfry runs)", true, stop);
  add_one(*command, "start", "Hand it messages again", true, start);
  add_one(*command, "remove", "Take the name away; what waits for it goes to the dead letters", true, remove);
}

}  // namespace belfry::app
