// Log lines: an event name, a text, then fields.
//
// A line is formatted by the caller into a shared buffer and written by a thread of its own, so nobody waits for the
// terminal or the disk. JSON lines where a program reads them, coloured columns on a terminal. If the reader is too slow
// for some megabytes of lines, further ones are counted and the count is logged: never a silent gap, never a full memory.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "belfry/base/time.h"

namespace belfry::log {

enum class Level { debug, info, warn, error };

struct Field {
  template <std::integral T>
  Field(std::string_view field_name, T number) : name(field_name), value(static_cast<std::int64_t>(number)) {}
  Field(std::string_view field_name, std::string_view text) : name(field_name), value(text) {}
  Field(std::string_view field_name, const std::string& text) : name(field_name), value(std::string_view(text)) {}
  Field(std::string_view field_name, const char* text) : name(field_name), value(std::string_view(text)) {}
  Field(std::string_view field_name, WallTime time) : name(field_name), value(time) {}
  Field(std::string_view field_name, Millis duration) : Field(field_name, duration.count()) {}

  std::string_view name;
  std::variant<std::int64_t, std::string_view, WallTime> value;
};

using Fields = std::initializer_list<Field>;

// `text` is for people and may be empty: then the event name speaks for itself.
void debug(std::string_view event, std::string_view text, Fields fields = {});
void info(std::string_view event, std::string_view text, Fields fields = {});
void warn(std::string_view event, std::string_view text, Fields fields = {});
void error(std::string_view event, std::string_view text, Fields fields = {});
bool enabled(Level level);

enum class Form { json, terminal };

struct Options {
  Level level = Level::info;
  Form form = Form::json;
  int descriptor = 2;
  std::function<WallTime()> now;  // log/ reads no clock of its own
};

// Starts the writer; its destruction writes what is left. Without one, lines go nowhere (tests, library users).
class Writer {
 public:
  explicit Writer(Options options);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  // Writes everything logged so far before it returns: for the last line of a process that is about to end.
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Sees every line instead of the writer, as JSON: for tests.
class Capture {
 public:
  explicit Capture(std::function<void(std::string_view line)> sink, Level level = Level::info);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
};

}  // namespace belfry::log
