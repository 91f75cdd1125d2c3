#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/base/limits.h"
#include "belfry/bus/envelope.h"
#include "belfry/clock/real_clock.h"
#include "belfry/net/url.h"

namespace belfry::app {
namespace {

struct ListFlags {
  Client client;
  std::string to;
  std::string from;
  std::string state;
  int limit = 100;
  std::string after;
};

struct IdFlags {
  Client client;
  std::string id;
  std::string delay;
  std::string at;
};

std::string check_state(const std::string& text) {
  if (bus::parse_message_state(text)) return "";
  return fmt::format("\"{}\" is not delayed, pending, leased, acked, cancelled, expired or dead", text);
}

std::string path_of(const std::string& id) { return "/v1/messages/" + net::percent_encoded(id); }

void print_line(const Answer& one, WallTime now) {
  std::string line = fmt::format("{}  {:<9}  {} -> {}  {}", one.text("messageId"), one.text("state"), one.text("from"),
                                 one.text("to"), readable_time(one.text("deliverAt"), now));
  if (one.flag("forced")) line += "  forced";
  if (one.has("reason")) line += fmt::format("  {}", printable(one.text("reason")));
  std::printf("%s\n", line.c_str());
}

std::string page_of(ListFlags& flags, int limit, const std::string& after) {
  std::string query = fmt::format("?limit={}", limit);
  for (const auto& [name, value] : {std::pair("to", flags.to), std::pair("from", flags.from),
                                    std::pair("state", flags.state), std::pair("after", after)})
    if (!value.empty()) query += fmt::format("&{}={}", name, net::percent_encoded(value));
  return flags.client.get("/v1/messages" + query);
}

// A page examines a bounded number of messages and may bring fewer than it could: go on until there are enough.
void list(ListFlags& flags) {
  if (!flags.to.empty()) check_name_argument("--to", flags.to);
  if (!flags.from.empty()) check_name_argument("--from", flags.from);
  if (flags.client.json()) return print_json(page_of(flags, flags.limit, flags.after));
  const WallTime now = round_down(read_real_clocks().wall);
  std::string after = flags.after;
  int left = flags.limit;
  do {
    const Answer page(page_of(flags, left, after));
    for (const Answer& one : page.list("messages")) {
      print_line(one, now);
      --left;
    }
    after = page.text("next");
  } while (left > 0 && !after.empty());
  if (left == flags.limit) std::fprintf(stderr, "no messages\n");
  if (!after.empty()) std::fprintf(stderr, "more: --after %s\n", after.c_str());
}

void show(IdFlags& flags) {
  const std::string answer = flags.client.get(path_of(flags.id));
  if (flags.client.json()) return print_json(answer);
  const Answer info(answer);
  const WallTime now = round_down(read_real_clocks().wall);
  std::printf("%s  %s\n  from %s to %s\n", info.text("messageId").c_str(), info.text("state").c_str(),
              info.text("from").c_str(), info.text("to").c_str());
  for (const auto& [label, name] :
       {std::pair("sent", "createdAt"), std::pair("due", "deliverAt"), std::pair("delivered", "deliveredAt"),
        std::pair("expires", "expiresAt"), std::pair("ended", "endedAt")})
    if (info.has(name)) std::printf("  %s %s\n", label, readable_time(info.text(name), now).c_str());
  if (info.flag("forced")) std::printf("  forced: a stop delivered it before its time\n");
  if (info.number("attempts") > 0) std::printf("  attempts %lld\n", static_cast<long long>(info.number("attempts")));
  if (info.has("reason")) std::printf("  reason %s\n", printable(info.text("reason")).c_str());
  if (info.has("taskId")) std::printf("  task %s\n", printable(info.text("taskId")).c_str());
  if (info.has("payload")) std::printf("  %s\n", printable(info.raw("payload")).c_str());
}

void print_done(const IdFlags& flags, const std::string& answer, const char* what) {
  if (flags.client.json()) return print_json(answer);
  std::printf("%s %s\n", Answer(answer).text("messageId").c_str(), what);
}

void move(IdFlags& flags) {
  if (flags.delay.empty() && flags.at.empty()) refuse_usage("--delay or --at is missing: the new time");
  if (!flags.delay.empty() && !flags.at.empty()) refuse_usage("only one of --delay and --at may be given");
  json::Writer writer;
  writer.object();
  if (flags.at.empty()) writer.field("delayMs", duration_argument("--delay", flags.delay).count());
  write_time_argument(writer, flags.at);
  const std::string answer = flags.client.patch(path_of(flags.id), writer.end().take());
  if (flags.client.json()) return print_json(answer);
  const Answer info(answer);
  std::printf("%s  delivery at %s\n", info.text("messageId").c_str(),
              readable_time(info.text("deliverAt"), round_down(read_real_clocks().wall)).c_str());
  print_understood(info);
  for (const std::string& warning : info.texts("warnings"))
    std::fprintf(stderr, "warning: %s\n", printable(warning).c_str());
}

std::shared_ptr<ListFlags> add_list_options(CLI::App& command, const std::string& fixed_state) {
  auto flags = std::make_shared<ListFlags>();
  command.add_option("--to", flags->to, "Of this recipient only")->type_name("ID");
  command.add_option("--from", flags->from, "Of this sender only")->type_name("ID");
  if (fixed_state.empty()) {
    command
        .add_option("--state", flags->state,
                    "delayed, pending, leased, acked, cancelled, expired or dead [all that are alive]")
        ->check(CLI::Validator(check_state, ""))
        ->type_name("STATE");
  } else {
    flags->state = fixed_state;
  }
  command.add_option("--limit", flags->limit, "At most this many")
      ->capture_default_str()
      ->type_name("N")
      ->check(number_from(1, kListPageMax));
  command.add_option("--after", flags->after, "Go on where the page before ended")->type_name("CURSOR");
  flags->client.add_options(command);
  return flags;
}

// `command list`, which is also what `command` alone does.
void add_list(CLI::App& command, const std::string& description, const std::string& fixed_state) {
  command.require_subcommand(0, 1);
  auto own = add_list_options(command, fixed_state);
  on_run(&command, [own] { list(*own); });
  CLI::App* const sub = add_command(command, "list", description);
  auto flags = add_list_options(*sub, fixed_state);
  on_run(sub, [flags] { list(*flags); });
}

std::shared_ptr<IdFlags> add_with_id(CLI::App& parent, const std::string& name, const std::string& description,
                                     void (*run)(IdFlags&)) {
  CLI::App* const command = add_command(parent, name, description);
  auto flags = std::make_shared<IdFlags>();
  command->add_option("id", flags->id, "The message's id")->required();
  if (name == "move") {
    command->add_option("--delay", flags->delay, "From now: 90s, 5m, 1h30m, 1.5h, 2d; without a unit, seconds")
        ->type_name("DURATION");
    command->add_option("--at", flags->at, "A time: \"tomorrow at 9\", 明天9点, 2027-01-01T09:00:00Z")
        ->type_name("TIME");
  }
  flags->client.add_options(*command);
  on_run(command, [flags, run] {
    check_message_argument(flags->id);
    run(*flags);
  });
  return flags;
}

}  // namespace

void add_messages(CLI::App& app) {
  CLI::App* const command = add_command(app, "messages", "Look at messages and change them");
  add_list(*command, "What waits; with --state what ended lately", "");
  add_with_id(*command, "show", "One message with its payload", show);
  add_with_id(*command, "cancel", "It will not be delivered",
              [](IdFlags& flags) { print_done(flags, flags.client.remove(path_of(flags.id)), "was cancelled"); });
  add_with_id(*command, "move", "Give it another time", move);
  add_with_id(*command, "now", "Deliver it now", [](IdFlags& flags) {
    print_done(flags, flags.client.post(path_of(flags.id) + ":deliver", ""), "was delivered");
  });

  CLI::App* const dead = add_command(*command, "dead", "Dead letters: messages that nobody could handle");
  add_list(*dead, "Dead letters with their reasons", "dead");
  add_with_id(*dead, "retry", "Deliver it once more", [](IdFlags& flags) {
    print_done(flags, flags.client.post(path_of(flags.id) + ":retry", ""), "is pending again");
  });
  add_with_id(*dead, "drop", "Give it up for good", [](IdFlags& flags) {
    print_done(flags, flags.client.post(path_of(flags.id) + ":drop", ""), "was dropped");
  });
}

}  // namespace belfry::app
