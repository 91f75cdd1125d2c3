// The life of one message, told in order.
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

class Story {
 public:
  Story(const Answer& info, WallTime now) : info_(info), now_(now) {}

  void print() const {
    const std::string state = info_.text("state");
    std::printf("Message %s is %s.\n", info_.text("messageId").c_str(), state.c_str());
    line("sent", time("createdAt") + " by " + info_.text("from") + " to " + info_.text("to"));
    if (info_.has("taskId")) line("task", printable(info_.text("taskId")));
    print_due();
    if (info_.has("expiresAt")) line("expires", time("expiresAt"));
    if (info_.has("deliveredAt")) line("delivered", time("deliveredAt") + lateness());
    if (info_.has("leasedUntil")) line("leased", "until " + time("leasedUntil"));
    print_attempts(state);
    print_end(state);
  }

 private:
  static void line(const char* label, const std::string& text) { std::printf("  %-10s %s\n", label, text.c_str()); }
  std::string time(const char* name) const { return readable_time(info_.text(name), now_); }

  void print_due() const {
    const std::vector<Answer> moves = info_.list("moves");
    if (!moves.empty()) line("first due", readable_time(moves.front().text("from"), now_));
    for (const Answer& move : moves)
      line(cause(move.text("cause")),
           readable_time(move.text("at"), now_) + ", due then " + readable_time(move.text("to"), now_));
    if (!moves.empty()) return line("due", time("deliverAt"));
    if (info_.text("deliverAt") == info_.text("createdAt")) return line("due", "at once");
    const auto sent = parse_iso(info_.text("createdAt"));
    const auto due = parse_iso(info_.text("deliverAt"));
    line("due", time("deliverAt") + (sent && due ? fmt::format(", {} after it was sent", readable(*due - *sent)) : ""));
  }

  static const char* cause(const std::string& word) {
    if (word == "delivered_now") return "called";
    if (word == "released") return "released";
    return word == "retried" ? "retried" : "moved";
  }

  std::string lateness() const {
    if (info_.flag("forced")) return ", before its time: a stop delivered everything that was delayed";
    if (!info_.has("latenessMs")) return "";
    const Millis late{info_.number("latenessMs")};
    return late == Millis{0} ? ", on time (less than 1 ms late)" : fmt::format(", {} late", readable(late));
  }

  void print_attempts(const std::string& state) const {
    const auto attempts = info_.number("attempts");
    if (attempts == 0) return;
    std::string text = fmt::format("{}", attempts);
    if (state == "leased")
      text += attempts == 1 ? ", in a receiver's hands now" : ", the last one in a receiver's hands now";
    if (state == "pending") text += ", without an ack; it waits for the next one";
    line("attempts", text);
  }

  void print_end(const std::string& state) const {
    if (!info_.has("endedAt")) return;
    std::string text = time("endedAt");
    if (info_.has("endedBy")) text += " by " + info_.text("endedBy");
    if (info_.has("reason")) text += ": " + printable(info_.text("reason"));
    line(state == "dead" ? "died" : state.c_str(), text);
  }

  const Answer& info_;
  WallTime now_;
};

}  // namespace

void add_why(CLI::App& app) {
  struct Flags {
    Client client;
    std::string id;
  };
  CLI::App* const command =
      add_command(app, "why", "The life of one message: sent, due, delivered, how late, acked, by whom");
  auto flags = std::make_shared<Flags>();
  command->add_option("id", flags->id, "The message's id")->required();
  flags->client.add_options(*command);
  on_run(command, [flags] {
    check_message_argument(flags->id);
    const std::string answer = flags->client.get("/v1/messages/" + net::percent_encoded(flags->id));
    if (flags->client.json()) return print_json(answer);
    const Answer info(answer);
    Story(info, round_down(read_real_clocks().wall)).print();
  });
}

}  // namespace belfry::app
