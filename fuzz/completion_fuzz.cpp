// The answer of a model, as bytes: however they are split they give the same answer or the same refusal, and an answer keeps
// what it promises. The first byte says how long the pieces are and whether the bytes end cleanly.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "belfry/base/assert.h"
#include "belfry/llm/completion.h"

namespace {

using namespace belfry;
using namespace belfry::llm;

Result<ChatAnswer> read(std::string_view bytes, std::size_t piece, bool clean_end) {
  CompletionReader reader(1);
  while (!bytes.empty() && !reader.done()) {
    if (!reader.feed(bytes.substr(0, piece))) break;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return reader.finish(clean_end, 0);
}

void check(const ChatAnswer& answer) {
  BELFRY_ASSERT(!answer.finish_reason.empty());
  BELFRY_ASSERT(answer.text.size() <= kTextBytesMax && answer.calls.size() <= kCallsMax);
  BELFRY_ASSERT(answer.usage.prompt_tokens >= 0 && answer.usage.completion_tokens >= 0);
  for (std::size_t i = 0; i < answer.calls.size(); ++i) {
    const ToolCall& call = answer.calls[i];
    BELFRY_ASSERT(!call.id.empty() && !call.name.empty() && !call.arguments.empty());
    for (std::size_t j = 0; j < i; ++j) BELFRY_ASSERT(answer.calls[j].id != call.id);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool clean_end = (data[0] & 0x80) != 0;
  const auto whole = read(bytes, bytes.size() + 1, clean_end);
  const auto pieces = read(bytes, 1 + data[0] % 32, clean_end);
  BELFRY_ASSERT(whole.has_value() == pieces.has_value());
  if (!whole) {
    BELFRY_ASSERT(whole.error().code == pieces.error().code && whole.error().detail == pieces.error().detail);
    BELFRY_ASSERT(!whole.error().detail.empty());
    return 0;
  }
  check(*whole);
  BELFRY_ASSERT(whole->text == pieces->text && whole->calls == pieces->calls);
  return 0;
}
