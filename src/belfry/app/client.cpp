#include "belfry/app/client.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/commands/commands.h"
#include "belfry/app/config.h"
#include "belfry/app/timezone.h"
#include "belfry/base/limits.h"
#include "belfry/net/http_client.h"

namespace belfry::app {

void Client::add_options(CLI::App& command) {
  // BELFRY_URL is read by hand: CLI11 would take it for a flag that was given, and an empty one for none.
  command.add_option("--server", server_, "Where the server is; BELFRY_URL names another than http://127.0.0.1:7171")
      ->type_name("URL");
  command.add_option("--token-file", token_file_, "File with the server's token; BELFRY_TOKEN holds the token itself")
      ->type_name("FILE");
  command.add_flag("--json", json_, "Print the server's answer as JSON");
}

std::string Client::server() const {
  if (!server_.empty()) return server_;
  const char* const url = std::getenv("BELFRY_URL");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (url && !*url) refuse_usage("BELFRY_URL is set and empty; it names the server, as in http://127.0.0.1:7171");
  return url ? url : "http://127.0.0.1:7171";
}

std::string Client::address(const std::string& target) const {
  const std::string base = server();
  return (base.ends_with('/') ? base.substr(0, base.size() - 1) : base) + target;
}

std::string Client::token() const {
  if (!token_file_.empty()) {
    const auto token = read_token_file(token_file_);
    if (!token) refuse(token.error().code, token.error().detail);
    return *token;
  }
  const char* const token = std::getenv("BELFRY_TOKEN");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return token ? token : "";
}

std::string Client::get(const std::string& target) { return call("GET", target, "", Millis{0}); }
std::string Client::post(const std::string& target, const std::string& body, Millis wait) {
  return call("POST", target, body, wait);
}
std::string Client::patch(const std::string& target, const std::string& body) {
  return call("PATCH", target, body, Millis{0});
}
std::string Client::put(const std::string& target, const std::string& body) {
  return call("PUT", target, body, Millis{0});
}
std::string Client::remove(const std::string& target) { return call("DELETE", target, "", Millis{0}); }

std::string Client::call(std::string method, const std::string& target, std::string body, Millis wait) {
  const std::string address = this->server();
  const auto server = net::parse_url(address);
  if (!server) refuse_usage(fmt::format("{}: {}", server_.empty() ? "BELFRY_URL" : "--server", server.error().detail));
  net::ClientRequest request;
  request.method = std::move(method);
  request.target = target;
  request.body = std::move(body);
  request.token = token();
  request.silence_max += wait;
  const auto response = net::call(*server, request);
  if (!response && response.error().code == Errc::unavailable)
    refuse(Errc::unavailable,
           fmt::format("{}; start one with `belfry serve`, or name another with --server or BELFRY_URL",
                       response.error().detail),
           kExitNoServer);
  if (!response) refuse(response.error().code, response.error().detail, kExitNoServer);
  if (response->status >= 200 && response->status < 300) return response->body;

  const auto parsed = json::parse(response->body);
  if (!parsed || parsed->kind != json::Kind::object || !json::find(*parsed, "error"))
    refuse(Errc::unavailable, fmt::format("what answers at {} is not a Belfry (HTTP {})", address, response->status),
           kExitNoServer);
  const Answer answer(response->body);
  if (throws_)
    refuse(parse_errc(answer.text("error")).value_or(Errc::unavailable), answer.text("message"),
           response->status >= 500 ? kExitNoServer : kExitRefused);
  if (json_) {
    print_json(response->body);
    throw CLI::RuntimeError(kExitRefused);
  }
  std::fflush(stdout);
  // The word as the server wrote it: a newer one may have words that are unknown here.
  std::fprintf(stderr, "error: %s (%s)\n", printable(answer.text("message")).c_str(),
               printable(answer.text("error")).c_str());
  throw CLI::RuntimeError(kExitRefused);
}

// {"messages":[{"payload":…}]}: what was as deep as a request may be stands three levels deeper in an answer.
constexpr int kAnswerDepthMax = kJsonDepthMax + 3;

Answer::Answer(std::string body) : body_(std::make_shared<const std::string>(std::move(body))) {
  const auto parsed = json::parse(*body_, kAnswerDepthMax);
  if (!parsed || parsed->kind != json::Kind::object)
    refuse(Errc::unavailable, "the server's answer is not a JSON object", kExitNoServer);
  value_ = *parsed;
}

std::optional<json::Value> Answer::find(std::string_view name) const {
  const auto found = json::find(value_, name);
  if (found && found->kind == json::Kind::null) return std::nullopt;
  return found;
}

bool Answer::has(std::string_view name) const { return find(name).has_value(); }
std::string Answer::text(std::string_view name) const {
  const auto found = find(name);
  return found && found->kind == json::Kind::string ? json::text(*found) : "";
}
std::int64_t Answer::number(std::string_view name) const {
  const auto found = find(name);
  return found ? json::integer(*found).value_or(0) : 0;
}
bool Answer::flag(std::string_view name) const {
  const auto found = find(name);
  return found && json::boolean(*found);
}
std::string Answer::raw(std::string_view name) const {
  const auto found = find(name);
  return found ? std::string(found->raw) : "";
}
std::vector<Answer> Answer::list(std::string_view name) const {
  std::vector<Answer> out;
  const auto found = find(name);
  if (!found || found->kind != json::Kind::array) return out;
  for (const json::Value element : json::elements(*found)) {
    Answer one(element);
    one.body_ = body_;  // the text must outlive its parts
    out.push_back(std::move(one));
  }
  return out;
}
Answer Answer::object(std::string_view name) const {
  const auto found = find(name);
  Answer one(found && found->kind == json::Kind::object ? *found : json::Value{json::Kind::object, "{}"});
  one.body_ = body_;
  return one;
}
std::vector<std::string> Answer::texts(std::string_view name) const {
  std::vector<std::string> out;
  const auto found = find(name);
  if (!found || found->kind != json::Kind::array) return out;
  for (const json::Value element : json::elements(*found))
    if (element.kind == json::Kind::string) out.push_back(json::text(element));
  return out;
}

void print_json(const std::string& body) {
  const std::string shown = escaped_for_terminal(body);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  if (!shown.ends_with('\n')) std::fputc('\n', stdout);
}

std::string readable(Millis duration) {
  const std::int64_t ms = std::abs(duration.count());
  const std::int64_t seconds = ms / 1000;
  if (ms < 1'000) return fmt::format("{} ms", ms);
  if (ms < 60'000)
    return ms % 1000 == 0 ? fmt::format("{} s", seconds) : fmt::format("{}.{} s", seconds, ms % 1000 / 100);
  if (seconds < 3'600)
    return seconds % 60 == 0 ? fmt::format("{} min", seconds / 60)
                             : fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{} h {} min", seconds / 3'600, seconds % 3'600 / 60);
  return fmt::format("{} d {} h", seconds / 86'400, seconds % 86'400 / 3'600);
}

std::string readable_time(const std::string& iso, WallTime now) {
  const auto time = parse_iso(iso);
  if (!time) return iso;
  std::string date = iso;
  if (date.size() > 10) date[10] = ' ';
  const Millis away = *time - now;
  if (std::abs(away.count()) < 1) return fmt::format("{} (now)", date);
  return away > Millis{0} ? fmt::format("{} (in {})", date, readable(away))
                          : fmt::format("{} ({} ago)", date, readable(away));
}

Millis duration_argument(const std::string& flag, const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration) refuse_usage(fmt::format("{}: {}", flag, duration.error().detail));
  return *duration;
}

void write_time_argument(json::Writer& writer, const std::string& text) {
  if (text.empty()) return;
  if (parse_iso(text)) {
    writer.field("deliverAt", text);
    return;
  }
  writer.key("schedule").object().field("when", text).field("timezone", system_zone().name()).end();
}

void print_understood(const Answer& answer) {
  if (!answer.has("understood")) return;
  const Answer understood = answer.object("understood");
  std::printf("  read as: %s\n", understood.object("sentence").text("en").c_str());
  for (const std::string& other : understood.texts("alternatives"))
    std::fprintf(stderr, "note: it could also mean %s\n", other.c_str());
}

void check_instant_argument(const std::string& flag, const std::string& text) {
  if (text.empty()) return;
  if (const auto time = parse_iso(text); !time) refuse_usage(fmt::format("{}: {}", flag, time.error().detail));
}

}  // namespace belfry::app
