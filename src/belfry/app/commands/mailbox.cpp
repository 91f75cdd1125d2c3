#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/net/url.h"

namespace belfry::app {

void add_mailbox(CLI::App& app) {
  struct Flags {
    Client client;
    std::string recipient;
  };
  CLI::App* const command = add_command(app, "mailbox", "Count a recipient's messages");
  auto flags = std::make_shared<Flags>();
  command->add_option("recipient", flags->recipient, "Whose messages")->required();
  flags->client.add_options(*command);
  on_run(command, [flags] {
    check_name_argument("recipient", flags->recipient);
    const std::string answer = flags->client.get("/v1/mailboxes/" + net::percent_encoded(flags->recipient));
    if (flags->client.json()) return print_json(answer);
    const Answer counts(answer);
    std::printf("pending    %lld\ndelayed    %lld\nin flight  %lld\n", static_cast<long long>(counts.number("pending")),
                static_cast<long long>(counts.number("delayed")), static_cast<long long>(counts.number("inFlight")));
    if (counts.has("caughtUp"))
      std::printf("what was due at the start is still being sorted in: some of the delayed ones are pending\n");
  });
}

}  // namespace belfry::app
