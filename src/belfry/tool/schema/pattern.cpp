#include "belfry/tool/schema/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

namespace belfry::tool {
namespace {

// What one pattern may take, program and caches: `.{1,1000}` just fits.
constexpr std::int64_t kPatternMemoryMax = 2 << 20;
// A byte looked at by so many instructions is a step: a microsecond once RE2's cache no longer holds. Before, it is far
// faster, but that cannot be known beforehand.
constexpr std::size_t kInstructionsPerStep = 128;

// RE2's own words quote the translation, which nobody wrote.
std::string reason(const re2::RE2& machine) {
  switch (machine.error_code()) {
    case re2::RE2::ErrorMissingParen: return "a ( has no )";
    case re2::RE2::ErrorUnexpectedParen: return "a ) has no (";
    case re2::RE2::ErrorRepeatArgument: return "there is nothing to repeat in front of *, +, ? or a count";
    case re2::RE2::ErrorRepeatOp: return "one repetition follows another";
    case re2::RE2::ErrorRepeatSize: return "it repeats something more than 1000 times; maxLength can say that";
    case re2::RE2::ErrorBadCharRange: return "there is no such property: " + machine.error_arg();
    case re2::RE2::ErrorPatternTooLarge: return "it is too large";
    default: return machine.error();
  }
}

}  // namespace

Result<Pattern> Pattern::compile(std::string_view ecma) {
  BELFRY_TRY(const std::string translated, to_re2(ecma));
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(kPatternMemoryMax);
  auto machine = std::make_unique<re2::RE2>(translated, options);
  if (machine->ok()) return Pattern(std::string(ecma), std::move(machine));
  return fail(Errc::invalid_argument, reason(*machine));
}

Pattern::Pattern(std::string source, std::unique_ptr<re2::RE2> machine)
    : source_(std::move(source)),
      machine_(std::move(machine)),
      size_(static_cast<std::size_t>(std::max(machine_->ProgramSize(), 1))) {}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

bool Pattern::found_in(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *machine_);
}

std::size_t Pattern::cost(std::size_t bytes) const { return 1 + bytes * size_ / kInstructionsPerStep; }

}  // namespace belfry::tool
