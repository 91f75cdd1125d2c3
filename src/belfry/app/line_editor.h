// The line that somebody types in a terminal, with its history, and what others print meanwhile: it appears above, and
// what was typed so far stays.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace belfry::app {

class LineEditor {
 public:
  explicit LineEditor(std::string prompt);
  ~LineEditor();

  // Nothing at the end of the input.
  std::optional<std::string> read_line();
  // From any thread.
  void print(std::string text);
  // What stands before what is typed, from now on. From any thread, too.
  void set_prompt(std::string prompt);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace belfry::app
