// A command's side of the conversation with a server.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "belfry/app/terminal.h"
#include "belfry/base/json.h"
#include "belfry/base/time.h"

namespace CLI {
class App;
}

namespace belfry::app {

// What every command that talks to a server takes.
class Client {
 public:
  // Adds --server, --token-file and --json.
  void add_options(CLI::App& command);
  bool json() const { return json_; }
  // Where a browser finds what the server has at `target`.
  std::string address(const std::string& target) const;
  // From here on what the server refuses is thrown as a Refusal, too; kExitNoServer if it may do it later.
  void throw_refusals() { throws_ = true; }

  // The server's answer as JSON. A refusal is printed and ends the command with 1, no server with 3.
  std::string get(const std::string& target);
  std::string post(const std::string& target, const std::string& body, Millis wait = Millis{0});
  std::string patch(const std::string& target, const std::string& body);
  std::string put(const std::string& target, const std::string& body);
  std::string remove(const std::string& target);

 private:
  std::string call(std::string method, const std::string& target, std::string body, Millis wait);
  std::string server() const;
  std::string token() const;

  std::string server_;  // empty: BELFRY_URL, or the default
  std::string token_file_;
  bool json_ = false;
  bool throws_ = false;
};

// Looks into an answer. A field that is not there, or null, reads as empty or zero.
class Answer {
 public:
  explicit Answer(std::string body);
  Answer(json::Value value) : value_(value) {}  // NOLINT(google-explicit-constructor): an element of another answer

  bool has(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::int64_t number(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::string raw(std::string_view name) const;
  std::string raw() const { return std::string(value_.raw); }  // all of it
  std::vector<Answer> list(std::string_view name) const;
  Answer object(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;

 private:
  std::optional<json::Value> find(std::string_view name) const;

  std::shared_ptr<const std::string> body_;
  json::Value value_;
};

// `{"a":…}`: prints what the server said, with the line's end it leaves out.
void print_json(const std::string& body);

// 250 ms, 3.2 s, 4 min 10 s, 2 h 5 min, 3 d 4 h
std::string readable(Millis duration);
// 2026-03-01 09:30:00.250Z (in 5 min), for people
std::string readable_time(const std::string& iso, WallTime now);
// Parses a duration or an instant of the command line, or ends the command with 2.
Millis duration_argument(const std::string& flag, const std::string& text);
void check_instant_argument(const std::string& flag, const std::string& text);
// The time of a message, as the user wrote it: an instant as `deliverAt`, anything else as `schedule`, read by the server
// in the zone of this machine. Nothing if it is empty.
void write_time_argument(json::Writer& writer, const std::string& text);
// How the server read a schedule, and what else it could mean.
void print_understood(const Answer& answer);

}  // namespace belfry::app
