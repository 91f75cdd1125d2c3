// Plugins without processes: each job takes as long as the script says and ends as it says, on simulated time.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "belfry/clock/clock.h"
#include "belfry/plugin/host.h"

namespace belfry::testing {

struct ScriptedJob {
  Nanos takes{0};
  plugin::Outcome outcome{.success = true, .data = R"({"text":"done"})", .code = {}, .message = {}};
  std::vector<std::string> progress;  // said at the beginning
  std::vector<std::string> at_last;   // said at the end
  Nanos grace{0};                     // it goes on for so long after it was cancelled
};

// What plugins do, and what they were asked: survives restarts.
struct HostScript {
  struct Asked {
    std::string plugin;
    std::string arguments;
    std::string context;
    WallTime at;
  };
  std::map<std::string, std::deque<ScriptedJob>> jobs;  // by plugin; the last one counts for all that follow
  std::vector<Asked> asked;
  int running = 0;
  int most_at_once = 0;
  std::map<std::string, int> running_of;
  std::map<std::string, int> most_of;

  ScriptedJob next(const std::string& plugin) {
    auto& all = jobs[plugin];
    if (all.empty()) return {};
    ScriptedJob job = all.front();
    if (all.size() > 1) all.pop_front();
    return job;
  }
};

class ScriptedHost final : public plugin::Host {
 public:
  ScriptedHost(Clock& clock, HostScript& script) : clock_(clock), script_(script) {}
  ~ScriptedHost() override {
    // What runs dies with the server.
    script_.running = 0;
    script_.running_of.clear();
  }

  Task<plugin::Outcome> perform(plugin::Job job, Progress progress, std::shared_ptr<Cancel> cancel) override {
    const std::string name = job.plugin->name;
    script_.asked.push_back({name, job.arguments, job.context, round_down(clock_.now().wall)});
    const ScriptedJob script = script_.next(name);
    script_.most_at_once = std::max(script_.most_at_once, ++script_.running);
    script_.most_of[name] = std::max(script_.most_of[name], ++script_.running_of[name]);
    struct Ends {
      HostScript& script;
      std::string name;
      ~Ends() {
        --script.running;
        --script.running_of[name];
      }
    } ends{script_, name};
    for (const std::string& said : script.progress) progress(said);
    const bool in_time = script.takes < job.timeout;
    const BootTime due = clock_.now().boot + std::min<Nanos>(script.takes, job.timeout);
    Wake wake;
    cancel->on_cancel([&wake] { wake.ring(); });
    while (!cancel->cancelled() && clock_.now().boot < due) co_await clock_.sleep_until(due, wake);
    cancel->on_cancel(nullptr);
    if (cancel->cancelled() && script.grace > Nanos{0}) {
      Wake nobody;
      const BootTime end = clock_.now().boot + script.grace;
      while (clock_.now().boot < end) co_await clock_.sleep_until(end, nobody);
    }
    for (const std::string& said : script.at_last) progress(said);
    if (cancel->cancelled()) co_return failure("cancelled", "it was cancelled");
    if (!in_time) co_return failure("timed_out", "it took too long");
    co_return script.outcome;
  }

  static plugin::Outcome failure(std::string code, std::string message) {
    return {.success = false, .data = {}, .code = std::move(code), .message = std::move(message)};
  }

 private:
  Clock& clock_;
  HostScript& script_;
};

inline std::shared_ptr<const plugin::Plugin> make_plugin(plugin::Plugin plugin) {
  if (plugin.parameters.empty())
    plugin.parameters =
        plugin.takes_schedule
            ? R"({"type":"object","properties":{"schedule":{"oneOf":[{"type":"string"},{"type":"object"}]}}})"
            : R"({"type":"object"})";
  return std::make_shared<const plugin::Plugin>(std::move(plugin));
}

}  // namespace belfry::testing
