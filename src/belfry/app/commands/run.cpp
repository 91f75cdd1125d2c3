// belfry run: carries out a plan and shows how it goes; belfry runs: those that there are.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/app/terminal.h"
#include "belfry/clock/real_clock.h"
#include "belfry/net/url.h"
#include "belfry/run/run_json.h"

namespace belfry::app {
namespace {

// Between two pictures of the same thing.
constexpr int kWaitMs = 1'000;

struct Flags {
  Client client;
  std::string plan;
  std::string id;
  std::string agent;
  std::string session;
  std::string key;
  std::string state;
  bool detach = false;
  int limit = 20;
};

WallTime now() { return round_down(read_real_clocks().wall); }

std::string read_plan_file(const std::string& path) {
  if (path == "-") return read_stdin();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse_usage(fmt::format("{} is a folder; a plan is a file", path));
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse_usage(fmt::format("cannot read {}", path));
  return {std::istreambuf_iterator<char>(in), {}};
}

// What the file says, but for what a flag says.
void write_context(json::Writer& writer, const Flags& flags, std::optional<json::Value> given) {
  if (given && given->kind == json::Kind::null) given.reset();
  if (given && given->kind != json::Kind::object)
    refuse_usage(fmt::format("context is {}; an object belongs there", json::name(given->kind)));
  if (!given && flags.agent.empty() && flags.session.empty()) return;
  writer.key("context").object();
  for (const json::Member& member : given ? json::every_member(*given) : std::vector<json::Member>{}) {
    const bool replaced =
        (member.key == "agentId" && !flags.agent.empty()) || (member.key == "sessionId" && !flags.session.empty());
    if (!replaced) writer.key(member.key).raw(member.value.raw);
  }
  if (!flags.agent.empty()) writer.field("agentId", flags.agent);
  if (!flags.session.empty()) writer.field("sessionId", flags.session);
  writer.end();
}

// A whole request, or only the plan of one.
std::string request_of(const Flags& flags, const std::string& text) {
  const auto value = json::parse(text);
  const std::string name = flags.plan == "-" ? "stdin" : flags.plan;
  if (!value) refuse_usage(fmt::format("{} is not JSON: {}", name, value.error().detail), value.error().code);
  if (value->kind != json::Kind::object) refuse_usage(fmt::format("{} is no object with steps", name));
  const bool whole = json::find(*value, "plan").has_value();
  json::Writer writer;
  writer.object();
  if (!whole) writer.key("plan").raw(value->raw);
  for (const json::Member& member : json::every_member(*value)) {
    const bool written_below = member.key == "context" || (member.key == "key" && !flags.key.empty());
    if (whole && !written_below) writer.key(member.key).raw(member.value.raw);
  }
  write_context(writer, flags, whole ? json::find(*value, "context") : std::nullopt);
  if (!flags.key.empty()) writer.field("key", flags.key);
  return writer.end().take();
}

std::string target(const std::string& id) { return "/v1/runs/" + net::percent_encoded(id); }

Millis since(const std::string& iso) {
  const auto time = parse_iso(iso);
  return time ? std::max(Millis{0}, Millis{now() - *time}) : Millis{0};
}

Millis until(const std::string& iso) {
  const auto time = parse_iso(iso);
  return time ? std::max(Millis{0}, Millis{*time - now()}) : Millis{0};
}

// "there is no paper (no_paper)"; what a step is called that did not run says it already.
std::string failure_of(const Answer& error) {
  const std::string code = error.text("code");
  std::string message = printable(error.text("message"));
  if (code == "cancelled" || code == "skipped") return message;
  return fmt::format("{} ({})", message, printable(code));
}

// What there is to say about a step in one line.
std::string note_of(const Answer& step) {
  const std::string state = step.text("state");
  const std::string feedback = step.text("feedbackAt");
  const bool comes = !feedback.empty() && until(feedback) > Millis{0};
  std::string report = feedback.empty() ? ""
                       : comes          ? fmt::format("reports in {}", readable(until(feedback)))
                                        : "reports when done";
  const std::string behind = report.empty() ? "" : ", " + report;
  if (state == "late" && !step.has("startedAt"))
    return fmt::format("waits for its turn, was to report at {}", feedback);
  const std::string so_long = readable(since(step.text("startedAt")));
  if (state == "late") return fmt::format("for {}, was to report at {}", so_long, feedback);
  if (state == "running") return fmt::format("for {}{}", so_long, behind);
  if (state == "held") return comes ? "done, " + report : "done";
  if (state == "waiting") return report;
  if (state == "reported") return step.flag("past") ? "its time was past" : "";
  return failure_of(step.object("error"));
}

std::string without_blanks_behind(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

struct Picture {
  std::string head;
  struct StepLine {
    std::string text;
    bool ended = false;
  };
  std::vector<StepLine> steps;
};

Picture picture(const Answer& run) {
  const std::string title = printable(run.text("title"));
  Picture all{.head = fmt::format("{}  {}{}{}", run.text("runId"), run.text("state"), title.empty() ? "" : "  ", title),
              .steps = {}};
  for (const Answer& step : run.list("steps"))
    all.steps.push_back({.text = without_blanks_behind(fmt::format(
                             "  {:>2}  {:<24} {:<11} {}", step.number("stepIndex"),
                             printable(run::plain_name(step.text("aiName"))), step.text("state"), note_of(step))),
                         .ended = step.has("reportedAt")});
  return all;
}

void print(const Picture& all) {
  std::printf("%s\n", all.head.c_str());
  for (const Picture::StepLine& step : all.steps) std::printf("%s\n", step.text.c_str());
}

// What fits into the terminal: if not all of it does, the steps that have not ended come first.
std::vector<std::string> fitting(const Picture& all, const TerminalSize& size) {
  std::vector<std::string> lines{all.head};
  const std::size_t room = std::max<std::size_t>(size.rows, 4) - 3;  // the head, what is left out, and the cursor
  std::size_t left_out = 0;
  const auto add = [&](const Picture::StepLine& step) {
    if (lines.size() <= room) {
      lines.push_back(step.text);
    } else {
      ++left_out;
    }
  };
  const bool crowded = all.steps.size() > room;
  for (const Picture::StepLine& step : all.steps)
    if (!crowded || !step.ended) add(step);
  if (crowded)
    for (const Picture::StepLine& step : all.steps)
      if (step.ended) add(step);
  if (left_out > 0) lines.push_back(fmt::format("      … and {} more", left_out));
  for (std::string& line : lines) line = fitted(line, size.columns);
  return lines;
}

// The picture before is painted over.
void paint_over(std::size_t before) {
  if (before > 0) std::printf("\x1b[%zuA\x1b[J", before);
}

void print_event(const Answer& event) {
  const std::string type = event.text("type");
  std::string line = fmt::format("{}  {:<12}", event.text("time"), type);
  if (event.has("aiName"))
    line += fmt::format(" {} {}", event.number("stepIndex"), printable(run::plain_name(event.text("aiName"))));
  if (type == "tool_choice") line += "  " + printable(event.text("message"));
  if (type == "tool_result" && event.flag("success")) line += "  " + printable(event.raw("data"));
  if (type == "tool_result" && !event.flag("success")) {
    const Answer error = event.object("error");
    const std::string code = error.text("code");
    const bool not_run = code == "cancelled" || code == "skipped";
    line += fmt::format("  {}: {}", not_run ? code : "failed", failure_of(error));
  }
  if (type == "done") line += " " + event.text("status");
  std::printf("%s\n", without_blanks_behind(std::move(line)).c_str());
  std::fflush(stdout);
}

// Where a browser finds what a plugin has left.
void print_files(const Client& client, const std::string& run, const Answer& step) {
  if (!step.text("aiName").starts_with("local__")) return;
  for (const Answer& file : step.object("data").list("files")) {
    const std::string name = file.text("name");
    if (name.empty()) continue;
    const std::string target =
        fmt::format("/v1/files/{}.{}.{}", run, step.number("stepIndex"), net::percent_encoded(name));
    std::printf("  %s\n", client.address(target).c_str());
  }
}

// How it stands, and what it gave.
void print_whole(const Client& client, const Answer& run) {
  print(picture(run));
  for (const Answer& step : run.list("steps")) {
    if (!step.has("data")) continue;
    std::printf("%s: %s\n", std::string(run::plain_name(step.text("aiName"))).c_str(),
                printable(step.raw("data")).c_str());
    print_files(client, run.text("runId"), step);
  }
}

// Shows a run until it ends: as a picture that changes on a terminal, else line by line.
int follow(Flags& flags, const std::string& id) {
  const bool pictures = ::isatty(1) != 0 && !flags.client.json();
  std::int64_t after = 0;
  std::size_t painted = 0;
  while (true) {
    const std::string page = flags.client.get(
        fmt::format("{}/events?format=json&after={}&waitMs={}", target(id), after, pictures ? kWaitMs : 20 * kWaitMs));
    std::string status;
    for (const Answer& event : Answer(page).list("events")) {
      after = event.number("seq");
      if (event.text("type") == "done") status = event.text("status");
      if (!pictures && !flags.client.json()) print_event(event);
    }
    if (flags.client.json()) {
      const auto whole = json::parse(page);
      for (const json::Value one : json::elements(*json::find(*whole, "events"))) print_json(std::string(one.raw));
    }
    if (pictures && status.empty()) {
      const auto lines = fitting(picture(Answer(flags.client.get(target(id) + "?results=false"))), terminal_size());
      paint_over(painted);
      for (const std::string& line : lines) std::printf("%s\n", line.c_str());
      std::fflush(stdout);
      painted = lines.size();
    } else if (pictures) {
      paint_over(painted);
      print_whole(flags.client, Answer(flags.client.get(target(id))));
    }
    if (!status.empty()) return status == "completed" ? kExitDone : kExitRefused;
  }
}

void end_with(int code) {
  if (code != kExitDone) throw CLI::RuntimeError(code);
}

void carry_out(Flags& flags) {
  const std::string answer = flags.client.post("/v1/runs", request_of(flags, read_plan_file(flags.plan)));
  const std::string id = Answer(answer).text("runId");
  if (flags.detach) {
    if (flags.client.json()) return print_json(answer);
    std::printf("%s\n", id.c_str());
    return;
  }
  if (!flags.client.json())
    std::fprintf(
        stderr, "run %s goes on if this is ended; belfry runs watch %s shows it again, belfry runs cancel %s ends it\n",
        id.c_str(), id.c_str(), id.c_str());
  end_with(follow(flags, id));
}

void list(Flags& flags) {
  std::string query = fmt::format("?limit={}", flags.limit);
  if (!flags.agent.empty()) query += "&agent=" + net::percent_encoded(flags.agent);
  if (!flags.session.empty()) query += "&session=" + net::percent_encoded(flags.session);
  if (!flags.state.empty()) query += "&state=" + net::percent_encoded(flags.state);
  const std::string answer = flags.client.get("/v1/runs" + query);
  if (flags.client.json()) return print_json(answer);
  const auto runs = Answer(answer).list("runs");
  for (const Answer& one : runs) {
    std::printf("%s\n", one.text("createdAt").c_str());
    print(picture(one));
  }
  const bool some_only = !(flags.agent.empty() && flags.session.empty() && flags.state.empty());
  if (runs.empty())
    std::fprintf(stderr, "%s\n", some_only ? "no run fits" : "there are no runs; belfry run PLAN.json begins one");
}

void show(Flags& flags) {
  const std::string answer = flags.client.get(target(flags.id));
  if (flags.client.json()) return print_json(answer);
  print_whole(flags.client, Answer(answer));
}

void cancel(Flags& flags) {
  const std::string answer = flags.client.post(target(flags.id) + ":cancel", "");
  if (flags.client.json()) return print_json(answer);
  std::printf("%s is cancelled\n", flags.id.c_str());
}

void remove(Flags& flags) {
  const std::string answer = flags.client.remove(target(flags.id));
  if (flags.client.json()) return print_json(answer);
  std::printf("%s is deleted\n", flags.id.c_str());
}

CLI::App* add_with_id(CLI::App& app, const char* name, const char* description, const std::shared_ptr<Flags>& flags) {
  CLI::App* const command = add_command(app, name, description);
  command->add_option("id", flags->id, "The run's id")->required();
  flags->client.add_options(*command);
  return command;
}

void add_list_options(CLI::App& command, Flags& flags) {
  command.add_option("--session", flags.session, "Of this conversation");
  command.add_option("--agent", flags.agent, "Of this agent");
  command.add_option("--state", flags.state, "In this state")->type_name("running|completed|failed|cancelled");
  command.add_option("--limit", flags.limit, "How many at most")->check(number_from(1, 1'000));
  flags.client.add_options(command);
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* const command = add_command(app, "run", "Carry out a plan of tools, and show how it goes");
  auto flags = std::make_shared<Flags>();
  command
      ->add_option("plan", flags->plan,
                   "A file with {\"steps\": [{\"aiName\", \"draftArgs\", \"dependsOn\"}]}; - reads stdin")
      ->required()
      ->type_name("FILE");
  command->add_option("--session", flags->session, "The conversation in which results are said");
  command->add_option("--agent", flags->agent, "On whose behalf: it is told when all of it has ended");
  command->add_option("--key", flags->key, "A name for this run: made again under it, nothing is begun twice");
  command->add_flag("--detach", flags->detach, "Print the run's id and do not wait");
  flags->client.add_options(*command);
  on_run(command, [flags] { carry_out(*flags); });
}

void add_runs(CLI::App& app) {
  CLI::App* const command = add_command(app, "runs", "Plans and tools that run: list, show, watch, cancel, delete");
  command->require_subcommand(0, 1);
  auto all = std::make_shared<Flags>();
  add_list_options(*command, *all);
  on_run(command, [all] { list(*all); });

  CLI::App* const listing = add_command(*command, "list", "Runs, newest first");
  auto list_flags = std::make_shared<Flags>();
  add_list_options(*listing, *list_flags);
  on_run(listing, [list_flags] { list(*list_flags); });

  auto show_flags = std::make_shared<Flags>();
  on_run(add_with_id(*command, "show", "One run and its results", show_flags), [show_flags] { show(*show_flags); });
  auto watch_flags = std::make_shared<Flags>();
  on_run(add_with_id(*command, "watch", "Follow a run until it ends", watch_flags),
         [watch_flags] { end_with(follow(*watch_flags, watch_flags->id)); });
  auto cancel_flags = std::make_shared<Flags>();
  on_run(add_with_id(*command, "cancel", "End a run: nothing more of it is reported", cancel_flags),
         [cancel_flags] { cancel(*cancel_flags); });
  auto delete_flags = std::make_shared<Flags>();
  on_run(add_with_id(*command, "delete", "Forget a run that has ended, with its files", delete_flags),
         [delete_flags] { remove(*delete_flags); });
}

}  // namespace belfry::app
