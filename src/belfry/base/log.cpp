#include "belfry/base/log.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "belfry/base/json.h"

namespace belfry::log {
namespace {

constexpr std::size_t kBufferBytesMax = 4u << 20;

std::string_view name(Level level) {
  switch (level) {
    case Level::debug: return "debug";
    case Level::info: return "info";
    case Level::warn: return "warn";
    case Level::error: return "error";
  }
  return "?";
}

std::string_view colour(Level level) {
  switch (level) {
    case Level::debug: return "\x1b[2m";
    case Level::info: return "\x1b[32m";
    case Level::warn: return "\x1b[33m";
    case Level::error: return "\x1b[31m";
  }
  return "";
}

void append_json_value(std::string& out, const Field& field) {
  if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
    fmt::format_to(std::back_inserter(out), "{}", *number);
  } else if (const auto* words = std::get_if<std::string_view>(&field.value)) {
    json::append_quoted(out, *words);
  } else {
    json::append_quoted(out, to_iso(std::get<WallTime>(field.value)));
  }
}

void append_json(std::string& out, WallTime now, Level level, std::string_view event, std::string_view text,
                 Fields fields) {
  fmt::format_to(std::back_inserter(out), R"({{"time":"{}","level":"{}","event":"{}","msg":)", to_iso(now), name(level),
                 event);
  json::append_quoted(out, text.empty() ? event : text);
  for (const Field& field : fields) {
    out += ',';
    json::append_quoted(out, field.name);
    out += ':';
    append_json_value(out, field);
  }
  out += "}\n";
}

// Control characters in a field must not move the terminal's cursor.
void append_printable(std::string& out, std::string_view words) {
  for (const char c : words) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
}

// In quotes where it would run into the next field; times and most words read better without.
void append_terminal_value(std::string& out, const Field& field) {
  if (const auto* words = std::get_if<std::string_view>(&field.value)) {
    if (words->empty() || words->find_first_of(" \t\n\"=") != std::string_view::npos) {
      json::append_quoted(out, *words);
    } else {
      append_printable(out, *words);
    }
  } else if (const auto* time = std::get_if<WallTime>(&field.value)) {
    out += to_iso(*time);
  } else {
    append_json_value(out, field);
  }
}

void append_terminal(std::string& out, WallTime now, Level level, std::string_view event, std::string_view text,
                     Fields fields) {
  fmt::format_to(std::back_inserter(out), "\x1b[2m{}\x1b[0m {}{:<5}\x1b[0m ", to_iso(now).substr(11, 12), colour(level),
                 name(level));
  append_printable(out, text.empty() ? event : text);
  out += "\x1b[2m";
  for (const Field& field : fields) {
    fmt::format_to(std::back_inserter(out), " {}=", field.name);
    append_terminal_value(out, field);
  }
  out += "\x1b[0m\n";
}

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads: a log that cannot be written must not stop the bells
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Where lines go now. One at a time: main sets up the writer, a test its capture.
struct Target {
  std::mutex mutex;
  Options options;
  std::function<void(std::string_view)> capture;
  std::string buffer;
  std::int64_t dropped = 0;
  std::condition_variable filled;
  bool writing = false;
};

Target& target() {
  static Target the_target;
  return the_target;
}

std::atomic<int> least_level{99};  // nothing is formatted while nobody listens

void write(Level level, std::string_view event, std::string_view text, Fields fields) {
  if (!enabled(level)) return;
  Target& to = target();
  const std::lock_guard lock(to.mutex);
  if (to.capture) {
    std::string line;
    append_json(line, WallTime{}, level, event, text, fields);
    to.capture(line);
    return;
  }
  if (!to.writing) return;
  if (to.buffer.size() > kBufferBytesMax) {
    ++to.dropped;
    return;
  }
  const bool was_empty = to.buffer.empty();
  const WallTime now = to.options.now();
  if (to.options.form == Form::json) {
    append_json(to.buffer, now, level, event, text, fields);
  } else {
    append_terminal(to.buffer, now, level, event, text, fields);
  }
  if (was_empty) to.filled.notify_one();
}

}  // namespace

bool enabled(Level level) { return static_cast<int>(level) >= least_level.load(std::memory_order_relaxed); }

void debug(std::string_view event, std::string_view text, Fields fields) { write(Level::debug, event, text, fields); }
void info(std::string_view event, std::string_view text, Fields fields) { write(Level::info, event, text, fields); }
void warn(std::string_view event, std::string_view text, Fields fields) { write(Level::warn, event, text, fields); }
void error(std::string_view event, std::string_view text, Fields fields) { write(Level::error, event, text, fields); }

struct Writer::Impl {
  std::mutex output;  // held while bytes go out, so that flush() knows they went
  std::string batch;
  std::thread thread;

  // Takes what has been logged and writes it. The caller holds `output`.
  void write_batch() {
    Target& to = target();
    {
      const std::lock_guard lock(to.mutex);
      batch.swap(to.buffer);
      if (to.dropped > 0) {
        const std::int64_t dropped = std::exchange(to.dropped, 0);
        append_json(batch, to.options.now(), Level::warn, "log.dropped",
                    "log lines were dropped: the reader is too slow", {{"count", dropped}});
      }
    }
    write_all(to.options.descriptor, batch);
    batch.clear();
  }

  void run() {
    Target& to = target();
    while (true) {
      {
        std::unique_lock lock(to.mutex);
        to.filled.wait(lock, [&] { return !to.buffer.empty() || !to.writing; });
        if (to.buffer.empty() && !to.writing) return;
      }
      const std::lock_guard lock(output);
      write_batch();
    }
  }
};

Writer::Writer(Options options) : impl_(std::make_unique<Impl>()) {
  Target& to = target();
  {
    const std::lock_guard lock(to.mutex);
    least_level = static_cast<int>(options.level);
    to.options = std::move(options);
    to.writing = true;
  }
  impl_->thread = std::thread([this] { impl_->run(); });
}

Writer::~Writer() {
  Target& to = target();
  {
    const std::lock_guard lock(to.mutex);
    to.writing = false;
    least_level = 99;
  }
  to.filled.notify_one();
  impl_->thread.join();
}

void Writer::flush() {
  const std::lock_guard lock(impl_->output);
  impl_->write_batch();
}

Capture::Capture(std::function<void(std::string_view line)> sink, Level level) {
  Target& to = target();
  const std::lock_guard lock(to.mutex);
  to.capture = std::move(sink);
  least_level = static_cast<int>(level);
}

Capture::~Capture() {
  Target& to = target();
  const std::lock_guard lock(to.mutex);
  to.capture = nullptr;
  least_level = to.writing ? static_cast<int>(to.options.level) : 99;
}

}  // namespace belfry::log
