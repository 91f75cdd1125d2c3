#include "belfry/agent/planner/thought.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "belfry/agent/planner/gate.h"
#include "belfry/agent/planner/memory_tables.h"
#include "belfry/agent/planner/prompt.h"
#include "belfry/base/json.h"
#include "belfry/base/log.h"
#include "belfry/base/utf8.h"
#include "belfry/bus/quick_replies.h"

namespace belfry::agent {
namespace {

using llm::ChatMessage;
using llm::Role;

// How much of a conversation is read, before the budget decides what of it is told.
constexpr int kLinesRead = 300;
constexpr int kTurnsRead = 100;
constexpr int kCallsRead = 100;
constexpr int kFactsTold = 50;
// A token is about three bytes, taking English (four) and Chinese (two to three) together.
constexpr std::size_t kBytesPerToken = 3;
// A model that gets its calls wrong this often in a row does not learn from what it is told.
constexpr int kVainStepsMax = 5;
// Panels need not see every letter.
constexpr Millis kDraftEvery{100};
// Between two looks whether the model is back.
constexpr Millis kWaitFirst{5'000};
constexpr Millis kWaitLongest{300'000};
constexpr std::size_t kDetailBytesMax = 300;
// Three hundred words were asked for.
constexpr std::size_t kSummaryBytesMax = 6'000;

std::string shortened(const std::string& text) { return belfry::shortened(text, kDetailBytesMax); }

// CJK ideographs begin with bytes E4 to E9.
bool is_chinese(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0xE4 && byte <= 0xE9;
  });
}

bool has_log(const std::string& conversation) { return !conversation.starts_with('@'); }

// The line of the log that a message hands on, if it is one that a person said.
std::string line_id(const bus::Delivery& message) {
  const auto payload = json::parse(message.payload);
  if (!payload || payload->kind != json::Kind::object) return {};
  return json::text_in(*payload, "messageId");
}

bool carries_error(std::string_view payload) {
  const auto value = json::parse(payload);
  return value && value->kind == json::Kind::object && json::find(*value, "error").has_value();
}

std::string reply_text(const std::string& arguments) {
  const auto value = json::parse(arguments);
  return value && value->kind == json::Kind::object ? json::text_in(*value, "text") : "";
}

bool has_ended(TurnState state) { return state != TurnState::open && state != TurnState::waiting; }

}  // namespace

// Shows what is being written to whoever looks at the conversation: not every letter, but the last one of a burst, too.
class Thought::DraftProgress final : public llm::Progress {
 public:
  DraftProgress(Planner& planner, std::string session, std::string agent, std::string draft)
      : state_(std::make_shared<State>(planner, std::move(session),
                                       chat::Draft{std::move(draft), std::move(agent), ""})) {}
  ~DraftProgress() override { end(); }

  void wrote(std::string_view text) override {
    if (state_->session.empty()) return;
    state_->latest = without_notes(text);
    if (state_->waiting) return;
    const BootTime now = state_->planner.parts_.clock.now().boot;
    if (!state_->shown || now >= *state_->shown + kDraftEvery) return show(state_);
    state_->waiting = true;
    state_->planner.tasks_.spawn("a draft", show_later(state_));
  }
  // It will not be said.
  void give_up() {
    end();
    state_->latest.clear();
    if (state_->shown) show(state_);
  }

 private:
  // Shared with the one who shows it later.
  struct State {
    State(Planner& one, std::string where, chat::Draft empty)
        : planner(one), session(std::move(where)), draft(std::move(empty)) {}
    Planner& planner;
    std::string session;
    chat::Draft draft;
    std::string latest;
    std::optional<BootTime> shown;
    bool waiting = false;
    bool over = false;
    Wake wake;
  };

  void end() {
    state_->over = true;
    state_->wake.ring();
  }
  static void show(const std::shared_ptr<State>& state) {
    if (state->planner.closed_) return;
    state->shown = state->planner.parts_.clock.now().boot;
    state->draft.text = state->latest;
    state->planner.tasks_.spawn("a draft", put(state->planner.parts_.chats, state->session, state->draft));
  }
  static Task<void> show_later(std::shared_ptr<State> state) {
    const BootTime due = *state->shown + kDraftEvery;
    Clock& clock = state->planner.parts_.clock;
    while (!state->over && clock.now().boot < due) co_await clock.sleep_until(due, state->wake);
    state->waiting = false;
    if (!state->over) show(state);
  }
  static Task<void> put(chat::Chats& chats, std::string session, chat::Draft draft) {
    co_await chats.draft(std::move(session), std::move(draft));
  }

  std::shared_ptr<State> state_;
};

Thought::Thought(Planner& planner, std::shared_ptr<const Profile> profile, bus::Delivery message, Hands& hands)
    : planner_(planner), profile_(std::move(profile)), message_(std::move(message)), hands_(hands) {}

Task<Result<>> Thought::run() {
  BELFRY_CO_TRY(Begun begun, co_await begin());
  turn_ = std::move(begun.turn);
  steps_ = std::move(begun.steps);
  session_ = std::move(begun.session);
  spend_ = begun.spend;
  asked_in_ = chat::text_of(message_.payload);
  if (turn_.state == TurnState::waiting) {
    hands_.postpone(begun.wait);
    co_return Result<>{};
  }
  if (has_ended(turn_.state)) co_return Result<>{};
  if (spend_.turns > planner_.options_.task_max.turns)
    co_return co_await fail_with(
        {Errc::limit_exceeded, fmt::format("this task has had {} turns", planner_.options_.task_max.turns)});

  struct Thinking {
    Thought& thought;
    explicit Thinking(Thought& one) : thought(one) {
      thought.runtime().cancel = thought.cancel_ = thought.hands_.cancel();
      ++thought.planner_.thinking_;
    }
    ~Thinking() {
      --thought.planner_.thinking_;
      if (thought.runtime().cancel == thought.cancel_) thought.runtime().cancel = nullptr;
    }
  } thinking(*this);
  const auto done = co_await think_and_act();
  if (done) co_return Result<>{};
  if (hands_.abandoned()) co_return fail(Errc::cancelled, "nobody waits for it any more");
  if (planner_.closed_) co_return fail(Errc::stopping, "the server is stopping; the turn goes on after the next start");
  if (is_passing(done.error().code)) co_return done;
  co_return co_await fail_with(done.error());
}

// --- beginning ---

Result<Thought::Begun> Thought::begin_in(store::Connection& connection, Turn turn, const bus::Delivery& message,
                                         const Profile& profile, const PlannerOptions& options, WallTime now) {
  TurnTables::drop_old(connection, to_ms(now - options.retention));
  Begun begun;
  std::optional<chat::SessionRow> session;
  if (has_log(turn.conversation)) session = chat::ChatTables::find(connection, turn.conversation);
  if (session && session->session.has(turn.agent)) begun.session = session->session;
  const auto known = TurnTables::find(connection, turn.agent, turn.message);
  if (known) begun.steps = TurnTables::steps(connection, turn.agent, turn.message);
  // One that has not begun to act looks again: a later one may have read its message meanwhile.
  const bool goes_on = known && (has_ended(known->state) || !begun.steps.empty());
  if (goes_on) {
    begun.turn = *known;
    begun.spend = TurnTables::spent(connection, turn.task);
    return begun;
  }
  if (known) {
    turn.failures = known->failures;
    turn.failing_since = known->failing_since;
  }

  Occasion occasion{.now = now, .written_at = message.created_at, .last_said_at = message.created_at};
  bool is_read = false;
  if (begun.session) {
    turn.up_to = begun.session->last_seq;
    occasion.in_group = begun.session->kind != chat::SessionKind::private_chat;
    occasion.last_said_at = begun.session->last_at;
    const auto line = chat::ChatTables::find_line(connection, line_id(message));
    const bool is_theirs = line && line->source == chat::Source::user && line->from == message.from;
    if (is_theirs && chat::ChatTables::session_of(connection, line->id) == session->number) {
      turn.payload.clear();  // the log has it
      occasion.by_person = true;
      occasion.named = chat::mentions(chat::text_of(line->payload), turn.agent);
      const auto replied = chat::ChatTables::find_line(connection, line->in_reply_to);
      occasion.replied = replied && replied->from == turn.agent;
      is_read = line->seq <= TurnTables::read_to(connection, turn.agent, turn.conversation);
    }
  }
  const Decision decision = decide(profile, occasion);
  turn.why = decision.why;
  turn.state = decision.what == Decision::What::wait     ? TurnState::waiting
               : decision.what == Decision::What::silent ? TurnState::silent
                                                         : TurnState::open;
  if (is_read) {
    turn.state = TurnState::merged;
    turn.why = "an earlier turn has read it";
  }
  begun.wait = decision.wait;
  if (has_ended(turn.state)) turn.ended_at = now;
  TurnTables::put(connection, turn);
  // Whoever goes on talking wants it to go on.
  if (occasion.by_person) TurnTables::forgive(connection, turn.task);
  const bool counts = turn.state == TurnState::open && !(known && known->state == TurnState::open);
  const Spend more{.turns = counts ? 1 : 0};
  begun.spend = TurnTables::spend(connection, turn.task, more, to_ms(now));
  begun.turn = std::move(turn);
  return begun;
}

Task<Result<Thought::Begun>> Thought::begin() {
  const WallTime now = planner_.now();
  Turn turn{.agent = message_.to,
            .message = bus::to_text(message_.id),
            .conversation = conversation_of(message_),
            .from = message_.from,
            .payload = message_.payload,
            .task = hands_.task_id(),
            .written_at = message_.created_at,
            .due_at = message_.deliver_at,
            .began_at = now};
  auto job = [turn, message = message_, profile = profile_, options = planner_.options_, now](
                 store::Connection& connection) { return begin_in(connection, turn, message, *profile, options, now); };
  co_return co_await parts().store.write<Begun>(std::move(job));
}

// --- what the model is told ---

Material Thought::material_from(store::Connection& connection) const {
  Material material;
  material.summary = TurnTables::summary(connection, turn_.agent, turn_.conversation);
  const bool log = session_.has_value();
  if (log) {
    const auto row = chat::ChatTables::find(connection, session_->id);
    if (row) material.lines = chat::ChatTables::read_before(connection, row->number, turn_.up_to + 1, kLinesRead);
    if (profile_->memory)
      for (const std::string& one : session_->people())
        for (Fact& fact : MemoryTables::list(connection, one, kFactsTold)) material.facts.push_back(std::move(fact));
  }
  std::set<std::string> known;  // the turns of this conversation
  for (Turn& turn : TurnTables::latest(connection, turn_.agent, turn_.conversation, kTurnsRead)) {
    known.insert(turn.message);
    const bool later = turn.message != turn_.message && turn.began_at > turn_.began_at;
    if (later || turn.payload.empty()) continue;
    if (!log && turn.message != turn_.message)
      material.answers[turn.message] = TurnTables::steps(connection, turn.agent, turn.message);
    material.turns.push_back(std::move(turn));
  }
  const tool::CallTables::Query query{
      .session = has_log(turn_.conversation) ? turn_.conversation : "", .agent = turn_.agent, .limit = kCallsRead};
  for (tool::CallRecord& record : tool::CallTables::list(connection, query).records) {
    const std::string turn = record.context.call_id.substr(0, record.context.call_id.find('-'));
    const bool ours = has_log(turn_.conversation) || known.contains(turn);
    if (ours && turn != turn_.message) material.calls.push_back(std::move(record));
  }
  return material;
}

Task<Result<>> Thought::read_material() {
  auto job = [this](store::Connection& connection) -> Result<Material> { return material_from(connection); };
  BELFRY_CO_TRY(Material material, co_await parts().store.read<Material>(std::move(job)));
  if (!runtime().tools_read) {
    for (const tool::CallRecord& record : material.calls) remember_found(record.tool, record.result);
    runtime().tools_read = true;
  }
  const std::size_t budget = static_cast<std::size_t>(profile_->context_tokens) * kBytesPerToken;
  when::Zone zone = planner_.options_.zone;
  if (session_ && !session_->timezone.empty())
    if (auto named = when::Zone::named(session_->timezone)) zone = *named;
  Cut both = cut(Teller(turn_.agent, zone, budget).items(material), budget);
  bool missing = false;
  if (!both.left_out.empty()) {
    const auto noted = co_await summarise(std::move(both.left_out), budget);
    const bool goes_without =
        !noted && (noted.error().code == Errc::model_garbled || noted.error().code == Errc::model_refused);
    if (!noted && !goes_without) co_return noted;
    missing = !noted;
    if (noted) {
      auto again = [this](store::Connection& connection) -> Result<std::optional<Summary>> {
        return TurnTables::summary(connection, turn_.agent, turn_.conversation);
      };
      BELFRY_CO_TRY(material.summary, co_await parts().store.read<std::optional<Summary>>(std::move(again)));
    }
  }
  const std::string people = session_ ? fmt::format("{}", fmt::join(session_->people(), ", ")) : turn_.from;
  const std::string_view prompt = profile_->prompt.empty() ? default_prompt() : std::string_view(profile_->prompt);
  const PromptValues values{turn_.agent, people, zone.iso(planner_.now()), zone.name()};
  history_.clear();
  history_.push_back(
      {.role = Role::system, .content = fmt::format("{}\n\n{}", render_prompt(prompt, values), house_rules())});
  for (ChatMessage& message : notes(material, missing)) history_.push_back(std::move(message));
  for (Item& item : both.kept)
    for (ChatMessage& message : item.messages) history_.push_back(std::move(message));
  co_return Result<>{};
}

// What does not fit is told in short from now on.
Task<Result<>> Thought::summarise(std::vector<Item> left_out, std::size_t budget) {
  auto before = [this](store::Connection& connection) -> Result<std::optional<Summary>> {
    return TurnTables::summary(connection, turn_.agent, turn_.conversation);
  };
  BELFRY_CO_TRY(const auto known, co_await parts().store.read<std::optional<Summary>>(std::move(before)));
  std::string told = known ? fmt::format("Notes so far:\n{}\n\n", known->text) : "";
  std::string since = as_text(left_out);
  // The end of it, if there is more than a model can read: a new agent in an old conversation.
  if (since.size() > budget) since = since.substr(since.find('\n', since.size() - budget) + 1);
  told += "Said since:\n" + since;
  struct Silent final : llm::Progress {
    void wrote(std::string_view) override {}
  } silent;
  llm::ChatRequest request{.model = profile_->model,
                           .messages = {{.role = Role::system, .content = std::string(summary_prompt())},
                                        {.role = Role::user, .content = std::move(told)}}};
  BELFRY_CO_TRY(const llm::ChatAnswer answer, co_await ask(std::move(request), silent));
  if (is_blank(answer.text)) co_return fail(Errc::model_garbled, "the summary is empty");
  Summary summary{left_out.back().at, belfry::shortened(without_notes(answer.text), kSummaryBytesMax)};
  auto job = [this, summary](store::Connection& connection) -> Result<> {
    TurnTables::set_summary(connection, turn_.agent, turn_.conversation, summary);
    return {};
  };
  co_return co_await parts().store.write<void>(std::move(job));
}

std::optional<Error> Thought::refusal_of(const std::string& tool) const {
  const tool::Tool* const known = parts().tools.find(tool);
  const bool is_private = session_ && session_->kind == chat::SessionKind::private_chat;
  const bool hidden = known && known->in_private_chats_only() && !is_private;
  if (known && !hidden && profile_->may_use(tool)) return std::nullopt;
  return Error{Errc::unknown_tool, fmt::format("there is no tool \"{}\" here", tool.substr(0, kIdBytesMax))};
}

std::string Thought::offered_tools() const {
  const auto found = planner_.runtimes_.find({message_.to, turn_.conversation});
  json::Writer writer;
  writer.array();
  for (const tool::Definition* const definition : parts().tools.definitions()) {
    const tool::Tool& tool = *parts().tools.find(definition->name);
    const bool visible = !tool.is_deferred() ||
                         (found != planner_.runtimes_.end() && found->second.found_tools.contains(definition->name));
    if (visible && !refusal_of(definition->name)) tool::write_definition(writer, *definition);
  }
  return writer.end().take();
}

llm::ChatRequest Thought::request() const {
  llm::ChatRequest request{.model = profile_->model, .messages = history_, .tools = offered_tools()};
  request.messages.insert(request.messages.end(), this_turn_.begin(), this_turn_.end());
  if (request.tools == "[]") request.tools.clear();
  return request;
}

// --- thinking and acting ---

Task<Result<>> Thought::think_and_act() {
  hands_.step_aside();
  BELFRY_CO_CHECK(co_await read_material());
  for (int number = 0;; ++number) {
    BELFRY_CO_TRY(const Step step, co_await next_step(number));
    const bool replies =
        std::ranges::any_of(step.calls, [](const llm::ToolCall& call) { return call.name == "reply"; });
    // What a model says beside its calls is said, unless it says it by one of them.
    if (!is_blank(step.text) && !replies) BELFRY_CO_CHECK(co_await say(step.text, number));
    if (step.calls.empty()) break;
    BELFRY_CO_TRY(Acted acted, co_await act(step, number));
    for (ChatMessage& result : acted.results) this_turn_.push_back(std::move(result));
    if (acted.only_talk) break;
    vain_steps_ = acted.all_failed ? vain_steps_ + 1 : 0;
    if (vain_steps_ == kVainStepsMax)
      co_return fail(Errc::model_garbled, fmt::format("all calls of {} steps in a row failed", kVainStepsMax));
    if (number + 1 == profile_->steps_max)
      co_return fail(Errc::limit_exceeded, fmt::format("it was not done after {} steps", profile_->steps_max));
  }
  if (!said_something_ && session_ && session_->kind == chat::SessionKind::private_chat && turn_.payload.empty())
    BELFRY_CO_CHECK(co_await notice("empty", "The model has said nothing.", "模型什么也没有说。"));
  co_return co_await end(TurnState::done, turn_.why);
}

bool Thought::over_budget() const {
  const Spend& most = planner_.options_.task_max;
  return spend_.calls >= most.calls || spend_.tokens >= most.tokens;
}

Task<Result<llm::ChatAnswer>> Thought::ask(llm::ChatRequest request, llm::Progress& progress) {
  if (planner_.closed_ || cancel_->cancelled()) co_return fail(Errc::cancelled, "it was stopped");
  if (!parts().roster.find(turn_.agent)) co_return fail(Errc::cancelled, "the agent is gone");
  if (over_budget())
    co_return fail(Errc::limit_exceeded,
                   fmt::format("this task has had {} calls of models and {} tokens", spend_.calls, spend_.tokens));
  if (!parts().model)
    co_return fail(Errc::model_refused, "no model is configured; [llm] base_url and model name one (docs/agents.md)");
  auto answer = co_await parts().model->complete(std::move(request), progress, cancel_);
  if (!answer) co_return answer;
  if (cancel_->cancelled()) co_return fail(Errc::cancelled, "it was stopped");
  const Spend more{.calls = 1, .tokens = answer->usage.prompt_tokens + answer->usage.completion_tokens};
  auto job = [task = turn_.task, more, now = planner_.now()](store::Connection& connection) -> Result<Spend> {
    return TurnTables::spend(connection, task, more, to_ms(now));
  };
  BELFRY_CO_TRY(spend_, co_await parts().store.write<Spend>(std::move(job)));
  co_return answer;
}

// The model's answer, which is on the disk when this returns: nothing is done about one that could be forgotten.
Task<Result<Step>> Thought::next_step(int number) {
  Step step;
  const bool is_known = number < static_cast<int>(steps_.size());
  if (is_known) {
    step = steps_[static_cast<std::size_t>(number)];
  } else {
    DraftProgress progress(planner_, session_ && !person().empty() ? session_->id : "", turn_.agent, draft_id(number));
    auto answer = co_await ask(request(), progress);
    if (!answer) progress.give_up();
    if (!answer) co_return std::unexpected(answer.error());
    step = {without_notes(answer->text), std::move(answer->calls)};
    auto job = [turn = turn_, number, step](store::Connection& connection) -> Result<> {
      if (TurnTables::add_step(connection, turn, number, step)) return {};
      return fail(Errc::cancelled, "another one has taken the turn over");
    };
    const std::size_t bytes = step.text.size();
    const auto stored = co_await parts().store.write_as_send<void>(std::move(job), bytes);
    if (!stored) co_return std::unexpected(stored.error());
    if (is_blank(step.text) || !step.calls.empty()) progress.give_up();
    steps_.push_back(step);
  }
  // Names of our own: a model may use one twice.
  ChatMessage message{.role = Role::assistant, .content = step.text};
  for (std::size_t i = 0; i < step.calls.size(); ++i)
    message.calls.push_back(
        teller().presentable({fmt::format("s{}c{}", number, i), step.calls[i].name, step.calls[i].arguments}));
  this_turn_.push_back(std::move(message));
  co_return step;
}

// The calls of one answer, while they are under way.
struct Thought::Using {
  std::vector<std::optional<Result<tool::CallOutcome>>> outcomes;
  std::size_t left = 0;
  Resume<int> all_done;
};

Task<void> Thought::use(std::shared_ptr<Using> all, std::size_t index, ToolUse wanted) {
  try {
    all->outcomes[index] = co_await hands_.use(std::move(wanted));
  } catch (const std::exception& e) {
    all->outcomes[index] = fail(Errc::unavailable, fmt::format("the call ended with an exception: {}", e.what()));
  }
  if (--all->left == 0 && all->all_done) std::exchange(all->all_done, nullptr)(0);
}

// Those that take their time run beside each other; Belfry's own are done in order, for one may mean what another did.
Task<Result<Thought::Acted>> Thought::act(const Step& step, int number) {
  auto all = std::make_shared<Using>();
  all->outcomes.resize(step.calls.size());
  all->left = step.calls.size();
  std::vector<std::pair<std::size_t, ToolUse>> in_order;
  for (std::size_t i = 0; i < step.calls.size(); ++i) {
    const llm::ToolCall& call = step.calls[i];
    ToolUse wanted{.tool = call.name,
                   .arguments = call.arguments,
                   .call_id = fmt::format("{}-{}-{}", turn_.message, number, i),
                   .reply_to = counterpart(),
                   .in_reply_to = session_ ? "" : turn_.message,
                   .refusal = refusal_of(call.name)};
    const tool::Tool* const tool = parts().tools.find(call.name);
    if (tool && tool->is_slow()) {
      planner_.tasks_.spawn("a tool call", use(all, i, std::move(wanted)));
    } else {
      in_order.emplace_back(i, std::move(wanted));
    }
  }
  for (auto& [index, wanted] : in_order) co_await use(all, index, std::move(wanted));
  if (all->left > 0) co_await suspend<int>([all](Resume<int> resume) { all->all_done = std::move(resume); });

  Acted acted{.all_failed = true, .only_talk = true};
  for (std::size_t i = 0; i < step.calls.size(); ++i) {
    const Result<tool::CallOutcome>& outcome = *all->outcomes[i];
    if (!outcome) co_return std::unexpected(outcome.error());
    if (!outcome->ok && is_passing(outcome->code)) co_return fail(outcome->code, "a tool could not do its work yet");
    const std::string& name = step.calls[i].name;
    const bool talk = (name == "reply" || name == "stay_silent") && outcome->ok;
    if (outcome->ok) said_something_ = true;
    if (outcome->ok) acted.all_failed = false;
    if (talk && name == "reply") note_answer(reply_text(step.calls[i].arguments));
    if (!talk) acted.only_talk = false;
    if (outcome->ok) remember_found(name, outcome->result);
    acted.results.push_back(
        {.role = Role::tool, .content = teller().result(outcome->result), .call_id = fmt::format("s{}c{}", number, i)});
  }
  co_return acted;
}

void Thought::remember_found(const std::string& tool, const std::string& result) {
  if (tool != "tool_search") return;
  const auto value = json::parse(result);
  if (!value || value->kind != json::Kind::object) return;
  const auto found = json::find(*value, "tools");
  if (!found || found->kind != json::Kind::array) return;
  for (const json::Value one : json::elements(*found))
    if (one.kind == json::Kind::object) runtime().found_tools.insert(json::text_in(one, "name"));
}

// --- speaking ---

std::string Thought::person() const {
  if (!session_) return {};
  const auto people = session_->people();
  if (std::ranges::find(people, message_.from) != people.end()) return message_.from;
  return people.empty() ? "" : people.front();
}

// What an agent says goes into the conversation that it is in; outside of one, back to the agent that wrote to it.
std::string Thought::counterpart() const {
  if (session_) return person();
  return message_.from == message_.to ? "" : message_.from;
}

Teller Thought::teller() const {
  return {turn_.agent, planner_.options_.zone, static_cast<std::size_t>(profile_->context_tokens) * kBytesPerToken};
}

std::string Thought::draft_id(int number) const { return fmt::format("{}-{}", turn_.message, number); }

Task<Result<>> Thought::say(std::string text, int number) {
  const std::string to = counterpart();
  said_something_ = true;
  if (to.empty()) co_return Result<>{};
  json::Writer payload;
  payload.object().field("text", text);
  if (session_) payload.field("draftId", draft_id(number));
  if (!session_) {
    payload.field("inReplyTo", turn_.message);
    const auto offered = bus::quick_replies_of(turn_.payload);
    const auto chosen = std::ranges::find(offered, text);
    if (chosen != offered.end()) payload.field("quickReplyIndex", static_cast<int>(chosen - offered.begin()));
    note_answer(text);
  }
  bus::Outgoing message{.to = to, .payload = payload.end().take()};
  const auto sent = co_await hands_.send(std::move(message));
  // Whoever cannot be answered was heard all the same.
  if (!sent && sent.error().code != Errc::unknown_recipient) co_return std::unexpected(sent.error());
  co_return Result<>{};
}

// What it said to a question of another agent's, which is answered with that.
void Thought::note_answer(const std::string& text) {
  const bool asked = !session_ && !bus::quick_replies_of(turn_.payload).empty();
  if (asked && turn_.answered.empty()) turn_.answered = shortened(text);
}

// A word of Belfry's own about the turn: once, however often the turn is taken again.
Task<Result<>> Thought::notice(std::string suffix, std::string english, std::string chinese) {
  const std::string text = is_chinese(asked_in_) ? chinese : english;
  said_something_ = true;
  json::Writer payload;
  payload.object().field("text", text);
  if (person().empty()) {
    // An agent that waits for an answer hears why there is none; an answer like this one is not answered.
    const std::string to = counterpart();
    if (to.empty() || carries_error(turn_.payload) || suffix == "busy") co_return Result<>{};
    payload.field("inReplyTo", turn_.message).field("error", suffix);
    bus::Outgoing message{.to = to, .payload = payload.end().take()};
    const auto sent = co_await hands_.send(std::move(message));
    if (!sent && is_passing(sent.error().code)) co_return std::unexpected(sent.error());
    co_return Result<>{};
  }
  chat::Saying saying{.id = fmt::format("{}-{}", turn_.message, suffix),
                      .session = session_->id,
                      .from = chat::kBelfry,
                      .to = person(),
                      .source = chat::Source::system,
                      .payload = payload.end().take(),
                      .task_id = turn_.task};
  auto job = [saying, now = planner_.now()](store::Connection& connection) -> Result<std::optional<chat::Chats::Said>> {
    return chat::Chats::write_saying(connection, saying, now);
  };
  BELFRY_CO_TRY(const auto said, co_await parts().store.write<std::optional<chat::Chats::Said>>(std::move(job)));
  if (said) parts().chats.tell(*said);
  co_return Result<>{};
}

// --- ending ---

Task<Result<>> Thought::store_turn() {
  auto job = [turn = turn_](store::Connection& connection) -> Result<> {
    TurnTables::put(connection, turn);
    // What it could not answer may wake it again.
    const bool has_read = turn.state == TurnState::done || turn.state == TurnState::cancelled;
    if (has_read && has_log(turn.conversation))
      TurnTables::set_read_to(connection, turn.agent, turn.conversation, turn.up_to);
    return {};
  };
  co_return co_await parts().store.write<void>(std::move(job));
}

Task<Result<>> Thought::end(TurnState state, std::string why) {
  turn_.state = state;
  turn_.why = std::move(why);
  turn_.ended_at = planner_.now();
  if (state == TurnState::done && turn_.failures > 0) turn_.why = "the model was away for a while";
  turn_.failures = 0;
  turn_.failing_since.reset();
  co_return co_await store_turn();
}

Task<Result<>> Thought::fail_with(Error error) {
  if (error.code == Errc::cancelled) {
    BELFRY_CO_CHECK(co_await notice("stopped", "Stopped.", "已停止。"));
    co_return co_await end(TurnState::cancelled, "somebody stopped it");
  }
  if (error.code == Errc::model_unavailable) co_return co_await wait_for_model(std::move(error));
  log::warn("agent.turn_failed", "an agent could not finish its turn",
            {{"id", turn_.agent}, {"message", turn_.message}, {"error", word(error.code)}});
  const std::string what = shortened(error.detail);
  BELFRY_CO_CHECK(co_await notice("failed", fmt::format("{} could not answer: {}.", turn_.agent, what),
                                  fmt::format("{} 没能回答：{}。", turn_.agent, what)));
  co_return co_await end(TurnState::failed, fmt::format("{}: {}", word(error.code), what));
}

// Its message comes again, later and later, until the model is back or nobody can want an answer any more.
Task<Result<>> Thought::wait_for_model(Error error) {
  const WallTime now = planner_.now();
  if (!turn_.failing_since) turn_.failing_since = now;
  const std::string what = shortened(error.detail);
  if (now - *turn_.failing_since >= planner_.options_.give_up_after) {
    BELFRY_CO_CHECK(co_await notice(
        "given-up",
        fmt::format("I have given up: no model could be reached since {} ({}). Please ask again.",
                    to_iso(*turn_.failing_since), what),
        fmt::format("我放弃了：自 {} 起一直无法连接模型（{}）。请再问一次。", to_iso(*turn_.failing_since), what)));
    co_return co_await end(TurnState::failed, fmt::format("{}: {}", word(error.code), what));
  }
  Millis wait = kWaitFirst;
  for (int i = 0; i < turn_.failures && wait < kWaitLongest; ++i) wait *= 3;
  ++turn_.failures;
  turn_.why = what;
  auto look = [turn = turn_](store::Connection& connection) -> Result<bool> {
    return TurnTables::another_fails(connection, turn);
  };
  BELFRY_CO_TRY(const bool was_told, co_await parts().store.read<bool>(std::move(look)));
  if (!was_told) {
    BELFRY_CO_CHECK(co_await notice(
        "busy",
        fmt::format("The model does not answer at the moment ({}). I go on trying, and answer as soon as it does.",
                    what),
        fmt::format("模型暂时没有回应（{}）。我会继续尝试，一有回应就答复你。", what)));
  }
  BELFRY_CO_CHECK(co_await store_turn());
  log::warn("agent.waits_for_model", "no model can be reached; the turn is taken again later",
            {{"id", turn_.agent}, {"message", turn_.message}, {"failures", turn_.failures}});
  hands_.postpone(std::min(wait, kWaitLongest));
  co_return Result<>{};
}

}  // namespace belfry::agent
