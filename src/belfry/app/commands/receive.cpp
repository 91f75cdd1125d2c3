#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/base/limits.h"
#include "belfry/clock/real_clock.h"
#include "belfry/net/url.h"

namespace belfry::app {
namespace {

struct Flags {
  Client client;
  std::string recipient;
  std::string wait;
  std::string lease;
  int max = 1;
  bool ack = false;
};

std::string mailbox(const Flags& flags) { return "/v1/mailboxes/" + net::percent_encoded(flags.recipient); }

Millis lease_argument(const std::string& text) {
  const Millis lease = duration_argument("--lease", text);
  if (lease < kLeaseMin || lease > kLeaseMax)
    refuse_usage(
        fmt::format("--lease: {} is not a time from {} to {}", text, readable(kLeaseMin), readable(kLeaseMax)));
  return lease;
}

std::string request_body(const Flags& flags, Millis wait) {
  json::Writer writer;
  writer.object().field("max", flags.max).field("waitMs", wait.count());
  if (!flags.lease.empty()) writer.field("leaseMs", lease_argument(flags.lease).count());
  return writer.end().take();
}

// One request waits a minute at most; a longer wait is several.
std::string receive_within(Flags& flags, Millis wait) {
  const BootTime deadline = read_real_clocks().boot + wait;
  while (true) {
    const auto left = std::chrono::ceil<Millis>(deadline - read_real_clocks().boot);
    const Millis turn = std::clamp(left, Millis{0}, kReceiveWaitMax);
    const std::string answer = flags.client.post(mailbox(flags) + ":receive", request_body(flags, turn), turn);
    const Answer received(answer);
    if (!received.list("messages").empty() || received.flag("stopping") || left <= kReceiveWaitMax) return answer;
  }
}

// False if some were refused: their leases had ended, and they come again.
bool ack(Flags& flags, const std::vector<Answer>& messages) {
  json::Writer writer;
  writer.object().key("leases").array();
  for (const Answer& message : messages) writer.value(message.text("lease"));
  const std::string answer = flags.client.post(mailbox(flags) + ":ack", writer.end().end().take());
  const std::vector<Answer> refused = Answer(answer).list("refused");
  for (const Answer& one : refused)
    std::fprintf(stderr, "error: %s was not acked: %s\n", one.text("messageId").c_str(),
                 printable(one.text("message")).c_str());
  return refused.empty();
}

void print_message(const Answer& message, bool acked, WallTime now) {
  std::string about = fmt::format("{}  from {}  sent {}", message.text("messageId"), message.text("from"),
                                  readable_time(message.text("createdAt"), now));
  if (message.number("attempt") > 1) about += fmt::format("  attempt {}", message.number("attempt"));
  if (message.flag("forced")) about += fmt::format("  forced (meant for {})", message.text("deliverAt"));
  if (message.has("taskId")) about += fmt::format("  task {}", printable(message.text("taskId")));
  if (!acked) about += fmt::format("\n  lease {}", message.text("lease"));
  std::printf("%s\n  %s\n", about.c_str(), printable(message.raw("payload")).c_str());
}

void receive(Flags& flags) {
  check_name_argument("recipient", flags.recipient);
  const Millis wait = flags.wait.empty() ? Millis{0} : duration_argument("--wait", flags.wait);
  const std::string answer = receive_within(flags, wait);
  const std::vector<Answer> messages = Answer(answer).list("messages");
  const WallTime now = round_down(read_real_clocks().wall);
  if (flags.client.json()) {
    print_json(answer);
  } else {
    for (const Answer& message : messages) print_message(message, flags.ack, now);
  }
  // Printed first, acked then: what the reader never saw must not be gone.
  if (!all_printed()) refuse(Errc::unavailable, "the messages could not be printed, so they were not acked");
  if (flags.ack && !messages.empty() && !ack(flags, messages)) throw CLI::RuntimeError(kExitRefused);
  if (!messages.empty()) return;
  if (Answer(answer).flag("stopping")) {
    // With --json the answer has said so.
    if (flags.client.json()) throw CLI::RuntimeError(kExitRefused);
    refuse(Errc::stopping, "the server is stopping and hands out nothing; come back when it runs again");
  }
  if (!flags.client.json()) std::fprintf(stderr, "no message for %s\n", flags.recipient.c_str());
}

}  // namespace

void add_receive(CLI::App& app) {
  CLI::App* const command = add_command(app, "receive", "Receive messages of a recipient");
  auto flags = std::make_shared<Flags>();
  command->add_option("recipient", flags->recipient, "Whose messages")->required();
  command->add_option("--wait", flags->wait, "Wait for the first one: 100s, 5m; without a unit, seconds [not at all]")
      ->type_name("DURATION");
  command->add_option("--max", flags->max, "At most this many")
      ->capture_default_str()
      ->type_name("N")
      ->check(number_from(1, kReceiveMax));
  command->add_option("--lease", flags->lease, "Time to handle them before they are delivered again [30s]")
      ->type_name("DURATION");
  command->add_flag("--ack", flags->ack, "Ack what was received: it is handled and will not come again");
  flags->client.add_options(*command);
  command->footer("Without --ack a message is leased: it comes back when its lease has run out.");
  on_run(command, [flags] { receive(*flags); });
}

}  // namespace belfry::app
