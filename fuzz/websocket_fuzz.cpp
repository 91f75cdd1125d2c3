// What a client sends over a WebSocket, in pieces of whatever size: the same messages come out, and what is a text is UTF-8
// within the limit; then it is read as a frame of the panel.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/assert.h"
#include "belfry/base/utf8.h"
#include "belfry/net/websocket.h"
#include "belfry/server/socket_wire.h"
#include "refusal.h"

namespace {

using namespace belfry;
namespace websocket = net::websocket;

constexpr std::size_t kMost = 1'000;

struct Outcome {
  std::vector<std::string> texts;
  int close_code = 0;
};

Outcome read_in_pieces(std::string_view bytes, std::size_t piece) {
  websocket::Reader reader(websocket::Side::server, kMost);
  Outcome outcome;
  std::string waiting;
  while (!bytes.empty()) {
    waiting += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    std::string_view left = waiting;
    while (true) {
      const auto message = reader.next(left);
      if (!message) {
        BELFRY_ASSERT(!message.error().what.empty());
        outcome.close_code = message.error().close_code;
        return outcome;
      }
      if (!*message) break;
      BELFRY_ASSERT((*message)->payload.size() <= kMost);
      if ((*message)->opcode == websocket::Opcode::text) outcome.texts.push_back((*message)->payload);
    }
    waiting.erase(0, waiting.size() - left.size());
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Outcome at_once = read_in_pieces(bytes, bytes.size());
  const Outcome cut = read_in_pieces(bytes, 1 + data[0] % 16);
  BELFRY_ASSERT(at_once.texts == cut.texts && at_once.close_code == cut.close_code);
  for (const std::string& text : at_once.texts) {
    BELFRY_ASSERT(is_utf8(text));
    fuzz::check(server::wire::read_client_frame(text));
  }
  fuzz::check(server::wire::read_client_frame(bytes));  // deeper than frames get by luck
  return 0;
}
