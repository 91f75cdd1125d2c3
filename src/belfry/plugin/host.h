// Runs plugins, as whoever wants something of them sees it. The real one starts processes (process_host.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "belfry/base/asio.h"
#include "belfry/base/cancel.h"
#include "belfry/plugin/plugin.h"

namespace belfry::plugin {

// From TERM to KILL.
inline constexpr Millis kTermGrace{2'000};

struct Job {
  std::shared_ptr<const Plugin> plugin;
  std::string arguments;  // a JSON object, without what is not the plugin's
  std::string context;    // a JSON object: runId, stepIndex, timeoutMs, …
  // Where it may leave files; exists. Empty: nowhere. It is told as BELFRY_OUTPUT_DIR, and a persistent one, whose
  // environment is older than the job, as `outputDir` beside `args`.
  std::string output_dir;
  Millis timeout = kTimeoutDefault;
};

// How it ended. Exactly one for each job.
struct Outcome {
  bool success = false;
  std::string data;  // JSON, of a success; "null" if the plugin gave none
  // Of a failure: a word for programs and a sentence. `timed_out`, `cancelled`, `not_started` (the program cannot be
  // run), `crashed` (ended without a result, or badly after one), `bad_output` (no JSON, two results, …), `too_much_output`,
  // `plugin_failed` (it said so itself), or the word that the plugin itself gave: `not_configured`, …
  std::string code;
  std::string message;
  bool own_word = false;  // the plugin gave the code itself: one that says `timed_out` was not ended by us
  bool passing = false;   // the trouble is Belfry's own and passes: the same may well succeed later
};

class Host {
 public:
  virtual ~Host() = default;
  // What the plugin says before it has ended: the JSON value of "progress".
  using Progress = std::function<void(std::string progress)>;
  // Returns when the plugin has ended: of one that is not persistent nothing runs any more then, whatever it has forked.
  // At the timeout, counted from here on the elapsed clock, and when `cancel` is cancelled, it is ended.
  virtual Task<Outcome> perform(Job job, Progress progress, std::shared_ptr<Cancel> cancel) = 0;
};

}  // namespace belfry::plugin
