// The parts of a running server, built in order and ended in the opposite one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "belfry/app/config.h"
#include "belfry/llm/client.h"

namespace belfry::app {

class Runtime {
 public:
  struct Options {
    Config config;
    std::string data;          // the directory; created if need be
    std::string token;         // empty: none
    bool accept_loss = false;  // serve what is left of data of which acknowledged commits are missing
    std::optional<llm::ClientOptions> model;
    std::function<void()> flush_log;
    std::function<void(const std::string& url)> ready;  // the server answers from here on
  };
  explicit Runtime(Options options);
  ~Runtime();

  // Opens the data and the port. Refuses what cannot be served, with everything as it was.
  Result<> open();
  // Serves until a signal ends it.
  void run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

std::string database_path(const std::string& data);

}  // namespace belfry::app
