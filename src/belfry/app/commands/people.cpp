#include <cstdio>
#include <fstream>
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
  std::string person;
  std::string url;
  std::string secret_file;
  std::string timeout;
  bool idempotent = false;
  bool remove = false;
  std::int64_t number = 0;
  bool all = false;
};

std::string path_of(const Flags& flags, std::string_view what) {
  return fmt::format("/v1/people/{}/{}", net::percent_encoded(flags.person), what);
}

void list(Flags& flags) {
  const std::string answer = flags.client.get("/v1/people");
  if (flags.client.json()) return print_json(answer);
  for (const Answer& one : Answer(answer).list("people")) std::printf("%s\n", one.text("id").c_str());
}

// The first line of a file, never a flag: everybody on the machine can read the command line.
std::string read_secret(const std::string& path) {
  std::ifstream file(path);
  std::string secret;
  if (!std::getline(file, secret)) refuse(Errc::invalid_argument, fmt::format("no secret can be read from {}", path));
  if (secret.ends_with('\r')) secret.pop_back();  // a file from Windows
  return secret;
}

std::string webhook_of(const Flags& flags) {
  json::Writer writer;
  writer.object().field("url", flags.url).field("idempotent", flags.idempotent);
  if (!flags.secret_file.empty()) writer.field("secret", read_secret(flags.secret_file));
  if (!flags.timeout.empty()) writer.field("timeout_ms", duration_argument("--timeout", flags.timeout).count());
  return writer.end().take();
}

void webhook(Flags& flags) {
  if (flags.url.empty() && (!flags.secret_file.empty() || !flags.timeout.empty() || flags.idempotent))
    refuse_usage("--url is missing: a webhook is set as a whole");
  if (flags.remove && !flags.url.empty()) refuse_usage("--remove stands beside --url; one of them is meant");
  const std::string path = path_of(flags, "webhook");
  std::string answer;
  if (flags.remove) {
    answer = flags.client.remove(path);
  } else {
    answer = flags.url.empty() ? flags.client.get(path) : flags.client.put(path, webhook_of(flags));
  }
  if (flags.client.json()) return print_json(answer);
  const Answer said(answer);
  if (flags.remove) {
    std::printf("%s is talked to in the built-in chat\n", said.text("user").c_str());
  } else {
    std::printf("%s  %s  timeout %s%s\n", said.text("user").c_str(), printable(said.text("url")).c_str(),
                readable(Millis{said.number("timeout_ms")}).c_str(), said.flag("idempotent") ? "  idempotent" : "");
  }
}

void outbox(Flags& flags) {
  const std::string answer = flags.client.get(path_of(flags, "outbox"));
  if (flags.client.json()) return print_json(answer);
  for (const Answer& one : Answer(answer).list("messages"))
    std::printf("%-16s %-8s %2lld  %s  %s\n", one.text("id").c_str(), one.text("state").c_str(),
                static_cast<long long>(one.number("attempts")), one.text("reason").c_str(),
                printable(one.text("last_error")).c_str());
}

void facts(Flags& flags) {
  const std::string answer = flags.client.get(path_of(flags, "facts"));
  if (flags.client.json()) return print_json(answer);
  const auto known = Answer(answer).list("facts");
  for (const Answer& one : known)
    std::printf("%4lld  %s\n", static_cast<long long>(one.number("number")), printable(one.text("text")).c_str());
  if (known.empty()) std::fprintf(stderr, "nothing is known about %s\n", flags.person.c_str());
}

void forget(Flags& flags) {
  if (flags.all == (flags.number > 0)) refuse_usage("which one? --number N, as `people facts` shows it, or --all");
  const std::string which = flags.all ? "" : fmt::format("?number={}", flags.number);
  const std::string answer = flags.client.remove(path_of(flags, "facts") + which);
  if (flags.client.json()) return print_json(answer);
  std::printf("%lld forgotten\n", static_cast<long long>(Answer(answer).number("forgotten")));
}

CLI::App* add_one(CLI::App& parent, const std::string& name, const std::string& description,
                  const std::shared_ptr<Flags>& flags, void (*run)(Flags&)) {
  CLI::App* const command = add_command(parent, name, description);
  command->add_option("person", flags->person, "Who")->required();
  flags->client.add_options(*command);
  on_run(command, [flags, run] {
    check_name_argument("person", flags->person);
    run(*flags);
  });
  return command;
}

}  // namespace

void add_people(CLI::App& app) {
  CLI::App* const command = add_command(app, "people", "Who can be talked to, and by which webhook");
  command->require_subcommand(0, 1);
  auto all = std::make_shared<Flags>();
  all->client.add_options(*command);
  on_run(command, [all] { list(*all); });

  auto flags = std::make_shared<Flags>();
  CLI::App* const setting = add_one(*command, "webhook", "Show, set or remove the webhook of a person", flags, webhook);
  setting->add_option("--url", flags->url, "Where what is said to them is sent: http:// or https://");
  setting->add_option("--secret-file", flags->secret_file, "A file with the secret that both sides sign with")
      ->type_name("FILE");
  setting->add_flag("--idempotent", flags->idempotent, "The receiver knows a request again by its Idempotency-Key");
  setting->add_option("--timeout", flags->timeout, "For one request, like 5s; 10s if not given");
  setting->add_flag("--remove", flags->remove, "Back to the built-in chat");
  add_one(*command, "facts", "What agents with a memory know about them", std::make_shared<Flags>(), facts);
  auto forgetting = std::make_shared<Flags>();
  CLI::App* const forgets = add_one(*command, "forget", "Have such a fact forgotten", forgetting, forget);
  forgets->add_option("--number", forgetting->number, "Which one");
  forgets->add_flag("--all", forgetting->all, "All of them");
  add_one(*command, "outbox", "What was sent to their webhook, the newest first", std::make_shared<Flags>(), outbox);
}

}  // namespace belfry::app
