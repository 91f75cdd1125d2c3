// Prompts: texts with places to be filled in.
//
//   You are {{agent}}. You talk with {{people}}. It is {{now}} in {{timezone}}.
//
// A name that is not one of these is refused when the prompt is set, not when the agent first thinks. What is filled in is
// not looked at again: whatever a person is called, it opens no place of its own.
#pragma once

#include <string>
#include <string_view>

#include "belfry/base/result.h"

namespace belfry::agent {

struct PromptValues {
  std::string agent;
  std::string people;    // who it talks with
  std::string now;       // ISO 8601, in the zone
  std::string timezone;  // its name
};

Result<> check_prompt(std::string_view text);
std::string render_prompt(std::string_view text, const PromptValues& values);

// The prompt of an agent that has none of its own.
std::string_view default_prompt();
// What every agent is told after its own prompt: how Belfry marks what it adds, and what cannot be trusted.
std::string_view house_rules();
std::string_view summary_prompt();
std::string_view memory_prompt();

}  // namespace belfry::agent
