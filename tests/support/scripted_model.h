// A language model that answers what its test says, and takes simulated time for it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "belfry/clock/clock.h"
#include "belfry/llm/model.h"

namespace belfry::testing {

struct ScriptedAnswer {
  Result<llm::ChatAnswer> answer = llm::ChatAnswer{};
  Millis takes{0};
  std::vector<std::string> drafts;  // the text so far, at even distances of that time
};

inline ScriptedAnswer says(std::string text, Millis takes = Millis{0}) {
  llm::ChatAnswer answer{.text = std::move(text), .finish_reason = "stop"};
  answer.usage = {.prompt_tokens = 100, .completion_tokens = 10};
  return {.answer = std::move(answer), .takes = takes};
}

inline ScriptedAnswer calls(std::vector<llm::ToolCall> wanted, Millis takes = Millis{0}) {
  ScriptedAnswer scripted = says("", takes);
  scripted.answer->calls = std::move(wanted);
  scripted.answer->finish_reason = "tool_calls";
  return scripted;
}

inline ScriptedAnswer fails(Errc code, std::string detail, Millis takes = Millis{0}) {
  return {.answer = fail(code, std::move(detail)), .takes = takes};
}

// What the model was asked, and how it answers: the same in every life of a World.
struct ModelScript {
  std::function<ScriptedAnswer(const llm::ChatRequest&)> answer = [](const llm::ChatRequest&) { return says("Yes."); };
  std::vector<llm::ChatRequest> asked;
  int under_way = 0;
  int most_under_way = 0;
};

class ScriptedModel final : public llm::Model {
 public:
  ScriptedModel(Clock& clock, ModelScript& script) : clock_(clock), script_(script) {}

  Task<Result<llm::ChatAnswer>> complete(llm::ChatRequest request, llm::Progress& progress,
                                         std::shared_ptr<Cancel> cancel) override {
    script_.asked.push_back(request);
    ScriptedAnswer scripted = script_.answer(request);
    struct UnderWay {
      ModelScript& script;
      explicit UnderWay(ModelScript& one) : script(one) {
        script.most_under_way = std::max(script.most_under_way, ++script.under_way);
      }
      ~UnderWay() { --script.under_way; }
    } under_way(script_);
    Wake wake;
    struct Listening {
      Cancel& cancel;
      ~Listening() { cancel.on_cancel(nullptr); }
    } listening{*cancel};
    cancel->on_cancel([&wake] { wake.ring(); });
    const BootTime began = clock_.now().boot;
    const auto steps = static_cast<int>(scripted.drafts.size()) + 1;
    for (int i = 1; i <= steps && !cancel->cancelled(); ++i) {
      const BootTime due = began + scripted.takes * i / steps;
      while (clock_.now().boot < due && !cancel->cancelled()) co_await clock_.sleep_until(due, wake);
      if (i < steps && !cancel->cancelled()) progress.wrote(scripted.drafts[static_cast<std::size_t>(i - 1)]);
    }
    if (cancel->cancelled()) co_return fail(Errc::cancelled, "it was stopped");
    if (scripted.answer && !scripted.answer->text.empty()) progress.wrote(scripted.answer->text);
    co_return scripted.answer;
  }

 private:
  Clock& clock_;
  ModelScript& script_;
};

}  // namespace belfry::testing
