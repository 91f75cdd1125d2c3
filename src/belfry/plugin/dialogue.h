// What is said between Belfry and a plugin: one line of JSON for the request, lines of JSON as an answer. Pure.
//
//   -> {"args":{…},"context":{…}}                     a persistent one: {"id":"7","args":{…},"context":{…},"outputDir":"…"}
//   <- {"progress":…}                                 any number of them
//   <- {"success":true,"data":…}                      exactly one result; only blank lines after it
//      {"success":false,"error":"text"}
//      {"success":false,"error":{"code":"not_configured","message":"text"}}
//
// Each line of a persistent one carries the `id` of its request; lines without it are ignored. So are other members.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "belfry/base/json.h"
#include "belfry/plugin/host.h"

namespace belfry::plugin {

// Cuts bytes into lines, within limits.
class Lines {
 public:
  Lines(std::size_t line_max, std::size_t total_max) : line_max_(line_max), total_max_(total_max) {}

  using Take = std::function<void(std::string_view line)>;
  // Nothing is taken any more once it was too much.
  void feed(std::string_view bytes, const Take& take);
  // The last line may lack its end.
  void finish(const Take& take);
  bool too_much() const { return too_much_; }
  // Counts from zero: the next request begins. What has begun as a line stays.
  void begin_anew() { total_ = 0; }

 private:
  std::size_t line_max_;
  std::size_t total_max_;
  std::size_t total_ = 0;
  std::string begun_;
  bool too_much_ = false;
};

// `id` is empty for a plugin that serves one request only.
std::string request_line(const Job& job, std::string_view id);

// Understands the answer to one request.
class Dialogue {
 public:
  Dialogue(std::string id, Host::Progress progress) : id_(std::move(id)), progress_(std::move(progress)) {}

  void take(std::string_view line);
  // What the plugin said, a success or a failure.
  const std::optional<Outcome>& result() const { return result_; }
  // Why it cannot be understood; counts more than a result.
  const std::optional<Outcome>& problem() const { return problem_; }

 private:
  void take_object(json::Value object);
  void take_of_many(std::string_view line);
  void refuse(std::string why);

  std::string id_;
  Host::Progress progress_;
  int lines_ = 0;
  std::optional<Outcome> result_;
  std::optional<Outcome> problem_;
};

Outcome failure(std::string code, std::string message);

// The end of what somebody wrote, in one line, as text: for the message of a crash.
std::string last_words(std::string_view bytes, std::size_t most);

}  // namespace belfry::plugin
