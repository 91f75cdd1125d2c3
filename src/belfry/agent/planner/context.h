// What a model is told: a conversation as messages, within a budget. Pure: what was read goes in, messages come out.
//
// What people, other agents and tools say is told as what they said, never as the system's word; what Belfry adds stands in
// ⟦double brackets⟧, which nobody else can write: in what others say they become plain ones. The agent's own lines are the
// assistant's, those that it wrote for later included, with a note of when.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "belfry/agent/planner/turn_tables.h"
#include "belfry/chat/conversation.h"
#include "belfry/llm/model.h"
#include "belfry/tool/call_tables.h"
#include "belfry/when/zone.h"

namespace belfry::agent {

// A short fact about a person (A6).
struct Fact {
  std::int64_t number = 0;
  std::string person;
  std::string text;
  std::string session;  // where it was learnt
  WallTime learnt_at;
};

// What there is to tell, in no order.
struct Material {
  std::vector<chat::Line> lines;                     // of the conversation's log
  std::vector<Turn> turns;                           // with messages that no log has
  std::map<std::string, std::vector<Step>> answers;  // to those, by message: where no log has them either
  std::vector<tool::CallRecord> calls;
  std::optional<Summary> summary;
  std::vector<Fact> facts;
};

// Without what only Belfry writes: for texts of others, and for answers of a model that imitates it.
std::string without_brackets(std::string_view text);
std::string without_notes(std::string_view answer);

// Something that is told whole or not at all.
struct Item {
  WallTime at;
  int rank = 0;  // among those of the same moment
  std::vector<llm::ChatMessage> messages;
  std::size_t order = 0;  // in which it was read

  std::size_t bytes() const;
};

class Teller {
 public:
  Teller(std::string agent, when::Zone zone, std::size_t budget_bytes)
      : agent_(std::move(agent)), zone_(zone), item_bytes_max_(budget_bytes / 4) {}

  // In order of time, without what the summary has.
  std::vector<Item> items(const Material& material) const;
  // What was said and answered, for a message that another agent sent.
  std::string heard(const Turn& turn) const;
  // What a tool gave back, as far as it fits.
  std::string result(std::string_view text) const { return without_brackets(clipped(text)); }
  // A call as a model's server takes it back: some refuse a conversation for ever in which a model has named a tool, or
  // written arguments, that cannot be.
  llm::ToolCall presentable(llm::ToolCall call) const;

 private:
  Item line(const chat::Line& line, const Material& material) const;
  Item call(const tool::CallRecord& record) const;
  std::string header(const chat::Line& line, const Material& material) const;
  std::string own_line(const chat::Line& line) const;
  std::string clipped(std::string_view text) const;
  std::string at(WallTime time) const { return zone_.iso(time); }

  std::string agent_;
  when::Zone zone_;
  std::size_t item_bytes_max_;
};

struct Cut {
  std::vector<Item> kept;
  std::vector<Item> left_out;  // older than all that is kept
};
// Keeps the newest ones that fit, and the last one in any case. If not all of them fit, about half of the budget is left
// free, so that it is not done again with the next message.
Cut cut(std::vector<Item> items, std::size_t budget_bytes);

// Facts and summary, as notes that stand before the conversation.
std::vector<llm::ChatMessage> notes(const Material& material, bool something_is_missing);
std::string as_text(const std::vector<Item>& items);

// What a payload says: its text, or the whole of it if that is not all.
std::string told(std::string_view payload);

}  // namespace belfry::agent
