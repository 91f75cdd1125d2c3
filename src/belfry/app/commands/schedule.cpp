// belfry schedule: what will be said in private chats, and when.
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/clock/real_clock.h"
#include "belfry/net/url.h"

namespace belfry::app {
namespace {

struct Flags {
  Client client;
  std::string task;
  std::string session;
  std::string status = "pending";
  std::string at;
  std::string text;
  std::string call_id;
  std::string max_late;
  bool replace = false;
  int limit = 100;
};

WallTime now() { return round_down(read_real_clocks().wall); }

std::string path_of(const std::string& task) { return "/v1/scheduled/" + net::percent_encoded(task); }

void print_task(const Answer& task) {
  std::printf("%s  %-9s %s", task.text("task_id").c_str(), task.text("status").c_str(),
              readable_time(task.text("send_at"), now()).c_str());
  if (task.has("late_ms")) std::printf("  %s late", readable(Millis{task.number("late_ms")}).c_str());
  if (task.has("reason")) std::printf("  %s", printable(task.text("reason")).c_str());
  std::printf("\n  %s -> %s: %s\n", task.text("agent_id").c_str(), task.text("user_id").c_str(),
              printable(task.text("message_text")).c_str());
}

void list(Flags& flags) {
  std::string query = fmt::format("?limit={}", flags.limit);
  if (flags.status != "all") query += "&status=" + net::percent_encoded(flags.status);
  if (!flags.session.empty()) query += "&session_id=" + net::percent_encoded(flags.session);
  const std::string answer = flags.client.get("/v1/scheduled" + query);
  if (flags.client.json()) return print_json(answer);
  const Answer page(answer);
  const auto tasks = page.list("tasks");
  for (const Answer& task : tasks) print_task(task);
  if (tasks.empty()) std::fprintf(stderr, "nothing is scheduled; belfry schedule add --help says how\n");
  if (page.has("next")) std::fprintf(stderr, "there are more; --limit shows up to 1000\n");
}

void add(Flags& flags) {
  json::Writer writer;
  writer.object().field("session_id", flags.session).field("send_at", flags.at).field("message_text", flags.text);
  if (flags.replace) writer.field("replace_existing", true);
  if (!flags.call_id.empty()) writer.field("call_id", flags.call_id);
  if (!flags.max_late.empty()) writer.field("max_late_ms", duration_argument("--max-late", flags.max_late).count());
  const std::string answer = flags.client.post("/v1/scheduled", writer.end().take());
  if (flags.client.json()) return print_json(answer);
  const Answer created(answer);
  std::printf("%s is said at %s\n", created.text("task_id").c_str(),
              readable_time(created.text("send_at"), now()).c_str());
  for (const std::string& id : created.texts("cancelled_task_ids")) std::printf("cancelled: %s\n", id.c_str());
  print_understood(created);
}

// Prints what became of a task.
void print_changed(const Flags& flags, const std::string& answer) {
  if (flags.client.json()) return print_json(answer);
  const Answer changed(answer);
  print_task(changed.object("task"));
  print_understood(changed);
}

void move(Flags& flags) {
  json::Writer writer;
  writer.object();
  if (!flags.at.empty()) writer.field("send_at", flags.at);
  if (!flags.text.empty()) writer.field("message_text", flags.text);
  print_changed(flags, flags.client.patch(path_of(flags.task), writer.end().take()));
}

void add_task_command(CLI::App& parent, const std::string& name, const std::string& description, void (*work)(Flags&)) {
  CLI::App* const command = add_command(parent, name, description);
  auto flags = std::make_shared<Flags>();
  command->add_option("task", flags->task, "Its id, as list shows it")->required();
  flags->client.add_options(*command);
  if (name == "move") {
    command->add_option("--at", flags->at, "When instead: ISO 8601, or words like \"tomorrow at 9\", 明天早上9点");
    command->add_option("--text", flags->text, "What instead");
  }
  on_run(command, [flags, work] {
    check_name_argument("task", flags->task);
    work(*flags);
  });
}

}  // namespace

void add_schedule(CLI::App& app) {
  CLI::App* const command =
      add_command(app, "schedule", "What will be said in private chats: list, add, cancel, move, now");
  command->require_subcommand(0, 1);
  auto all = std::make_shared<Flags>();
  all->client.add_options(*command);
  on_run(command, [all] { list(*all); });

  CLI::App* const listing = add_command(*command, "list", "What is scheduled, the earliest first");
  auto list_flags = std::make_shared<Flags>();
  listing->add_option("--session", list_flags->session, "Only of this private chat");
  listing->add_option("--status", list_flags->status, "pending (if not given), sent, cancelled, failed or all")
      ->check(CLI::IsMember({"pending", "sent", "cancelled", "failed", "all"}));
  listing->add_option("--limit", list_flags->limit, "How many at most")->check(number_from(1, 1'000));
  list_flags->client.add_options(*listing);
  on_run(listing, [list_flags] { list(*list_flags); });

  CLI::App* const adding = add_command(*command, "add", "Write now what is said later");
  auto flags = std::make_shared<Flags>();
  adding->add_option("text", flags->text, "What is said, as it is")->required();
  adding->add_option("--session", flags->session, "In which private chat")->required();
  adding->add_option("--at", flags->at, "When: ISO 8601, or words like \"tomorrow at 9\", 20分钟后")->required();
  adding->add_flag("--replace", flags->replace, "Cancel what else is pending in this chat");
  adding->add_option("--max-late", flags->max_late, "Do not say it at all if it would be later than this, like 10m");
  adding->add_option("--call-id", flags->call_id, "A name for this: made again under it, it makes no second one");
  flags->client.add_options(*adding);
  on_run(adding, [flags] { add(*flags); });

  add_task_command(*command, "cancel", "Do not say it",
                   [](Flags& given) { print_changed(given, given.client.remove(path_of(given.task))); });
  add_task_command(*command, "move", "Say it at another time, or something else", [](Flags& given) { move(given); });
  add_task_command(*command, "now", "Say it now",
                   [](Flags& given) { print_changed(given, given.client.post(path_of(given.task) + ":send", "")); });
}

}  // namespace belfry::app
