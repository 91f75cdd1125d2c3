#include "belfry/agent/concierge/concierge.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "belfry/agent/concierge/intent.h"
#include "belfry/agent/concierge/phrases.h"
#include "belfry/agent/concierge/utterance.h"
#include "belfry/base/json.h"
#include "belfry/bus/quick_replies.h"
#include "belfry/chat/private_message.h"

namespace belfry::agent {
namespace {

// How far it looks back for what it asked or listed.
constexpr int kLinesBack = 50;
constexpr std::size_t kListedMax = 20;
// And for what it said it would tell others; and how many of those it knows of at once.
constexpr int kLinesBackForTellings = chat::kLinesPageMax;
constexpr std::size_t kTellingsMax = 100;
// Of a hundred tasks each: so many can be listed, and cancelled, at once.
constexpr int kTaskPagesMax = 10;
constexpr std::size_t kOfferedMax = 8;

struct TaskRow {
  std::string id;
  std::string text;
  WallTime at;
  WallTime made;
  std::string session;   // of what somebody else is told: where it is scheduled
  bool delayed = false;  // of what an agent is told: it is a delayed message
};

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

Listed listed(const TaskRow& row) { return {row.text, row.at}; }

// The one that was made last; of those made at once, the latest.
TaskRow newest_of(const std::vector<TaskRow>& rows) {
  return *std::max_element(rows.begin(), rows.end(), [](const TaskRow& a, const TaskRow& b) {
    return a.made != b.made ? a.made < b.made : a.at < b.at;
  });
}

std::vector<std::string> ids(const std::vector<TaskRow>& rows) {
  std::vector<std::string> all;
  for (const TaskRow& row : rows) all.push_back(row.id);
  return all;
}

// ASCII words whole, so that tea is not found in team; others as they stand there.
bool has_word(const std::string& text, const std::string& word) {
  const auto in_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = !in_word(word.front()) || at == 0 || !in_word(text[at - 1]);
    const bool ends = !in_word(word.back()) || end == text.size() || !in_word(text[end]);
    if (begins && ends) return true;
  }
  return false;
}

std::vector<TaskRow> read_tasks(const std::string& result, std::string& next) {
  std::vector<TaskRow> rows;
  next.clear();
  const auto whole = json::parse(result);
  if (!whole || whole->kind != json::Kind::object) return rows;
  next = json::text_in(*whole, "next");
  const auto tasks = json::find(*whole, "tasks");
  if (!tasks) return rows;
  for (const json::Value task : json::elements(*tasks)) {
    const auto at = parse_iso(json::text_in(task, "send_at"));
    const auto made = parse_iso(json::text_in(task, "created_at"));
    if (at && made)
      rows.push_back({json::text_in(task, "task_id"), json::text_in(task, "message_text"), *at, *made, "", false});
  }
  return rows;
}

// The delayed messages that a tool listed, with the texts that they have in `texts`.
std::vector<TaskRow> read_delayed(const std::string& result, const std::map<std::string, std::string>& texts) {
  std::vector<TaskRow> rows;
  const auto whole = json::parse(result);
  if (!whole || whole->kind != json::Kind::object) return rows;
  const auto messages = json::find(*whole, "messages");
  if (!messages) return rows;
  for (const json::Value message : json::elements(*messages)) {
    const std::string id = json::text_in(message, "messageId");
    const auto at = parse_iso(json::text_in(message, "deliverAt"));
    const auto made = parse_iso(json::text_in(message, "createdAt"));
    if (at && made && texts.contains(id)) rows.push_back({id, texts.at(id), *at, *made, "", true});
  }
  return rows;
}

std::string message_of(const std::string& result) {
  const auto whole = json::parse(result);
  if (!whole || whole->kind != json::Kind::object) return result;
  const auto found = json::find(*whole, "message");
  return found && found->kind == json::Kind::string ? json::text(*found) : result;
}

// One message of a person's, and what is done about it.
class Turn {
 public:
  Turn(chat::Chats& chats, const bus::TimeReader& times, bus::Delivery message, Hands& hands)
      : chats_(chats), times_(times), message_(std::move(message)), hands_(hands) {}

  Task<Result<>> take();

 private:
  WallTime now() const { return message_.created_at; }  // when it was said: a turn that is taken again reads the same
  Phrases phrases() const { return {language_, zone_, now()}; }
  ReadTime reader() const {
    return [this](std::string_view text) { return read(text); };
  }
  Result<when::Reading> read(std::string_view text) const {
    return times_.read({.text = std::string(text), .timezone = session_.timezone, .now = now()});
  }
  when::Local local(WallTime at) const { return zone_.local(std::chrono::floor<std::chrono::seconds>(at)); }

  // What stands in the conversation.
  Task<Result<>> look_back();

  // What is to be done.
  Task<Result<>> fresh(Utterance utterance);
  Task<Result<>> answer();
  std::optional<Utterance> other_request() const;
  Task<Result<>> answer_when(bool of_move);
  Task<Result<>> answer_what();
  Task<Result<>> answer_which_time();
  Task<Result<>> answer_which_task();
  Task<Result<>> go_on(Intent intent);
  Task<Result<>> schedule(Intent intent);
  Task<Result<>> tell(Intent intent);
  Task<Result<>> list();
  Task<Result<>> cancel(Utterance utterance);
  Task<Result<>> cancel_rows(std::vector<TaskRow> rows);
  Task<Result<>> begin_move(Utterance utterance);
  Task<Result<>> move(Intent intent);
  std::vector<WallTime> times_on_day_of(const std::vector<WallTime>& times, WallTime task_at) const;

  // Which ones.
  Task<Result<std::vector<TaskRow>>> pending();
  Task<Result<std::vector<TaskRow>>> tasks_in(std::string session);
  Task<Result<std::vector<TaskRow>>> tellings();
  std::vector<TaskRow> fitting(const Target& target, const std::vector<TaskRow>& rows) const;
  std::vector<TaskRow> numbered(const std::vector<int>& numbers, const std::vector<TaskRow>& rows) const;
  bool fits(const Target& target, const TaskRow& row) const;
  Task<Result<>> ask_which(Ask ask, Intent intent, std::vector<TaskRow> rows, bool none_fits);

  Task<Result<>> say(std::string text, Note note = {}, std::vector<std::string> replies = {});
  Task<Result<tool::CallOutcome>> call(std::string tool, std::string arguments, std::string session = {});

  chat::Chats& chats_;
  const bus::TimeReader& times_;
  bus::Delivery message_;
  Hands& hands_;
  chat::Session session_;
  when::Zone zone_;
  when::Language language_ = when::Language::english;
  std::string text_;
  std::optional<int> button_;
  std::optional<Note> asked_;                                        // the question that this may be the answer to
  std::vector<std::string> listed_;                                  // the tasks as they were last numbered
  std::int64_t own_seq_ = std::numeric_limits<std::int64_t>::max();  // of the line that this message is
  int calls_ = 0;
};

Task<Result<>> Turn::take() {
  auto session = co_await chats_.session(message_.session_id);
  if (!session) co_return Result<>{};  // written by another agent, in no conversation: two of these would never stop
  session_ = std::move(*session);
  const std::vector<std::string> people = session_.people();
  if (std::find(people.begin(), people.end(), message_.from) == people.end()) co_return Result<>{};
  text_ = chat::text_of(message_.payload);
  Utterance utterance = understand(text_, reader());
  language_ = utterance.language;
  const auto zone = read("now");
  if (zone) zone_ = zone->zone;
  if (session_.kind != chat::SessionKind::private_chat) co_return co_await say(phrases().private_only());
  BELFRY_CO_CHECK(co_await look_back());
  if (asked_ && asked_->ask != Ask::nothing) co_return co_await answer();
  co_return co_await fresh(std::move(utterance));
}

// The lines before this message: what the concierge last asked, and how it last numbered the tasks.
Task<Result<>> Turn::look_back() {
  const auto payload = json::parse(message_.payload);
  std::string own;
  std::string in_reply_to;
  if (payload && payload->kind == json::Kind::object) {
    own = json::text_in(*payload, "messageId");
    in_reply_to = json::text_in(*payload, "inReplyTo");
    const auto index = json::find(*payload, "quickReplyIndex");
    const auto number = index ? json::integer(*index) : std::nullopt;
    if (number && *number >= 0 && static_cast<std::size_t>(*number) < bus::kQuickRepliesMax)
      button_ = static_cast<int>(*number);
  }
  BELFRY_CO_TRY(const auto lines,
                co_await chats_.lines(
                    {.session = session_.id, .before = std::numeric_limits<std::int64_t>::max(), .limit = kLinesBack}));
  const auto mine = std::find_if(lines.begin(), lines.end(), [&](const chat::Line& line) { return line.id == own; });
  if (mine != lines.end()) own_seq_ = mine->seq;
  const std::vector<std::string> closes = mine == lines.end() ? std::vector<std::string>{} : mine->closes;
  bool newest = true;
  bool first = true;
  for (auto line = mine == lines.end() ? lines.end() : mine; line != lines.begin();) {
    --line;
    if (line->source == chat::Source::user) first = false;
    if (line->from != message_.to || line->source != chat::Source::agent) continue;
    const auto note = read_note(line->payload);
    // What closes a question is its answer; of those without buttons it is the first that was said after it.
    const bool closed = std::find(closes.begin(), closes.end(), line->id) != closes.end();
    const bool meant = in_reply_to.empty() ? newest : line->id == in_reply_to;
    newest = false;
    if (!note) continue;
    if (meant && (line->question ? closed : first) && !asked_) asked_ = note;
    if (listed_.empty()) listed_ = note->tasks;
  }
  co_return Result<>{};
}

Task<Result<>> Turn::fresh(Utterance utterance) {
  language_ = utterance.language;
  if (utterance.impossible_time) co_return co_await say(phrases().bad_time(utterance.impossible_time->detail));
  if (utterance.several_people) co_return co_await say(phrases().one_at_a_time());
  switch (utterance.wish) {
    case Wish::remind:
    case Wish::tell: co_return co_await go_on(intent_of(utterance, now()));
    case Wish::list: co_return co_await list();
    case Wish::cancel: co_return co_await cancel(std::move(utterance));
    case Wish::move: co_return co_await begin_move(std::move(utterance));
    case Wish::help: co_return co_await say(phrases().help());
    case Wish::drop: co_return co_await say(phrases().dropped());
    case Wish::greet: co_return co_await say(phrases().greeting());
    case Wish::thank: co_return co_await say(phrases().welcome());
    case Wish::other: break;
  }
  co_return co_await say(phrases().not_understood());
}

// --- answers ---

// Whoever was asked may have something else in mind.
std::optional<Utterance> Turn::other_request() const {
  if (button_) return std::nullopt;
  Utterance utterance = understand(typed_answer(text_), reader());
  const bool names_a_time_only = utterance.wish == Wish::remind && utterance.what.empty();
  if (utterance.wish == Wish::other || names_a_time_only) return std::nullopt;
  // "Cancel it" is about what was asked, and not about something else that is scheduled.
  const bool takes_back = utterance.wish == Wish::cancel && utterance.target.says_nothing();
  if (takes_back) utterance.wish = Wish::drop;
  // One can be reminded of moving the car, or of telling somebody something.
  const bool may_be_what =
      utterance.wish == Wish::remind || utterance.wish == Wish::tell ||
      ((utterance.wish == Wish::cancel || utterance.wish == Wish::move) && utterance.target.only_words());
  if (asked_->ask == Ask::what && may_be_what) return std::nullopt;
  return utterance;
}

Task<Result<>> Turn::answer() {
  if (asked_->intent.language == when::Language::chinese && !button_ && typed_number(text_))
    language_ = when::Language::chinese;
  if (button_) language_ = asked_->intent.language;
  const bool refuses = !button_ && typed_consent(text_) == false;
  if (refuses) co_return co_await say(phrases().dropped());
  if (asked_->ask == Ask::once) {
    const bool agrees = button_ ? *button_ == 0 : typed_consent(text_).value_or(false);
    if (button_ && !agrees) co_return co_await say(phrases().dropped());
    if (agrees) {
      asked_->intent.recurs = false;
      co_return co_await go_on(asked_->intent);
    }
  }
  if (auto utterance = other_request()) co_return co_await fresh(std::move(*utterance));
  switch (asked_->ask) {
    case Ask::when: co_return co_await answer_when(false);
    case Ask::new_time: co_return co_await answer_when(true);
    case Ask::what: co_return co_await answer_what();
    case Ask::which_time: co_return co_await answer_which_time();
    case Ask::cancel:
    case Ask::move: co_return co_await answer_which_task();
    default: co_return co_await fresh(understand(text_, reader()));
  }
}

Task<Result<>> Turn::answer_when(bool of_move) {
  if (declines_time(text_)) co_return co_await go_on(asked_->intent);  // asks again
  // As if it had stood in the request itself, so that the same rules hold.
  const bool chinese = asked_->intent.language == when::Language::chinese;
  const std::string as_request =
      of_move ? (chinese ? "改到" : "move it to ") + text_ : (chinese ? "提醒我" : "remind me ") + text_;
  Utterance utterance = understand(as_request, reader());
  if (!utterance.at && !utterance.impossible_time) {
    if (const auto reading = read(text_)) utterance.at = *reading;
  }
  if (!utterance.at) co_return co_await fresh(understand(text_, reader()));
  utterance.wish = asked_->intent.wish;
  const Intent timed = intent_of(utterance, now());
  Intent intent = asked_->intent;
  intent.times = timed.times;
  intent.shift = timed.shift;
  intent.recurs = timed.recurs;
  intent.on_its_day = timed.on_its_day;
  co_return co_await go_on(std::move(intent));
}

Task<Result<>> Turn::answer_what() {
  Intent intent = asked_->intent;
  if (hesitates(text_)) co_return co_await go_on(std::move(intent));  // asks again
  const std::string text = typed_answer(text_);
  const bool framed = understand(text, reader()).wish == Wish::remind;
  const std::string frame = language_ == when::Language::chinese ? "提醒我" : "remind me ";
  const Utterance said = understand(framed ? text : frame + text, reader());
  const bool names_a_time_only = said.wish == Wish::remind && said.what.empty() && said.at;
  if (!names_a_time_only) intent.what = said.wish == Wish::remind && !said.what.empty() ? said.what : text;
  // What is said last holds; but a day in what it is about changes no time of day.
  const bool exact = said.at && said.at->kind != when::ReadingKind::date && !said.at->day_only;
  const bool times_it = said.at && !said.impossible_time && (intent.times.empty() || exact);
  if (times_it) intent.times = possible_times(*said.at, now());
  co_return co_await go_on(std::move(intent));
}

Task<Result<>> Turn::answer_which_time() {
  const std::vector<WallTime>& times = asked_->intent.times;
  std::optional<std::size_t> chosen;
  if (button_ && static_cast<std::size_t>(*button_) < times.size()) chosen = static_cast<std::size_t>(*button_);
  if (const auto number = typed_number(text_);
      !chosen && number && *number >= 1 && static_cast<std::size_t>(*number) <= times.size())
    chosen = static_cast<std::size_t>(*number) - 1;
  if (const auto half = typed_half(text_); !chosen && half) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      const bool morning = local(times[i]).time < std::chrono::hours{12};
      if (morning == (*half == Half::morning)) chosen = i;
    }
  }
  if (!chosen && declines_time(text_)) co_return co_await go_on(asked_->intent);  // asks again
  const auto reading = read(text_);
  const bool on_a_day = names_a_day(text_);
  for (std::size_t i = 0; i < times.size() && !chosen && reading; ++i) {
    const bool same = on_a_day ? times[i] == reading->at : local(times[i]).time == local(reading->at).time;
    if (same && reading->alternatives.empty()) chosen = i;
  }
  if (!chosen)
    co_return co_await (reading ? answer_when(asked_->intent.wish == Wish::move) : fresh(understand(text_, reader())));
  Intent intent = asked_->intent;
  intent.times = {times[*chosen]};
  intent.on_its_day = false;
  co_return co_await go_on(std::move(intent));
}

Task<Result<>> Turn::answer_which_task() {
  const bool cancels = asked_->ask == Ask::cancel;
  BELFRY_CO_TRY(const auto rows, co_await pending());
  std::vector<TaskRow> chosen;
  std::optional<std::size_t> index;
  if (button_) index = static_cast<std::size_t>(*button_);
  if (const auto number = typed_number(text_); number && *number >= 1) index = static_cast<std::size_t>(*number) - 1;
  if (index) {
    if (*index >= asked_->tasks.size()) co_return co_await say(phrases().dropped());
    for (const TaskRow& row : rows)
      if (row.id == asked_->tasks[*index]) chosen.push_back(row);
    if (chosen.empty()) co_return co_await say(phrases().too_late());
  } else {
    const bool chinese = language_ == when::Language::chinese;
    const Utterance named = understand((chinese ? "取消" : "cancel ") + text_, reader());
    if (!named.target.says_nothing()) chosen = fitting(named.target, rows);
  }
  if (chosen.empty()) co_return co_await fresh(understand(text_, reader()));
  if (cancels) co_return co_await cancel_rows(std::move(chosen));
  if (chosen.size() > 1) co_return co_await ask_which(Ask::move, asked_->intent, rows, false);
  Intent intent = asked_->intent;
  intent.task = chosen.front().id;
  co_return co_await go_on(std::move(intent));
}

// --- a request, asked about until it is whole ---

Task<Result<>> Turn::go_on(Intent intent) {
  const Phrases say_it = phrases();
  intent.language = language_;
  if (intent.wish == Wish::remind && intent.what.empty())
    co_return co_await say(say_it.ask_what(), {.ask = Ask::what, .intent = intent});
  if (intent.wish == Wish::remind && intent.times.empty())
    co_return co_await say(say_it.ask_when(intent.what), {.ask = Ask::when, .intent = intent}, say_it.usual_times());
  if (intent.wish == Wish::move) co_return co_await move(std::move(intent));
  if (intent.recurs)
    co_return co_await say(say_it.ask_once(intent.what, intent.times.front()), {.ask = Ask::once, .intent = intent},
                           {say_it.yes_once(), say_it.no()});
  if (intent.times.size() > 1) {
    std::vector<std::string> labels;
    for (const WallTime time : intent.times) labels.push_back(say_it.time_label(time));
    co_return co_await say(say_it.ask_which_time(intent.what), {.ask = Ask::which_time, .intent = intent}, labels);
  }
  if (intent.wish == Wish::tell) co_return co_await tell(std::move(intent));
  co_return co_await schedule(std::move(intent));
}

Task<Result<>> Turn::schedule(Intent intent) {
  const WallTime at = intent.times.front();
  if (at < now() - chat::kPastTolerated) co_return co_await say(phrases().past(at));
  json::Writer arguments;
  arguments.object().field("send_at", zone_.iso(at)).field("message_text", phrases().reminder(intent.what));
  BELFRY_CO_TRY(const auto outcome, co_await call("schedule_private_message", arguments.end().take()));
  if (!outcome.ok && outcome.code == Errc::invalid_time) co_return co_await say(phrases().past(at));
  if (!outcome.ok) co_return co_await say(phrases().failed(message_of(outcome.result)));
  co_return co_await say(phrases().will_remind(intent.what, at));
}

Task<Result<>> Turn::tell(Intent intent) {
  if (intent.to.empty()) co_return co_await say(phrases().nobody(intent.what));
  std::optional<WallTime> at;
  if (!intent.times.empty()) at = intent.times.front();
  if (at && *at < now() - chat::kPastTolerated) co_return co_await say(phrases().past(*at));
  const std::string text = phrases().passed_on(message_.from, intent.what);
  Note note{.intent = {.what = intent.what, .to = intent.to}};
  std::string tool = "send_message";
  json::Writer arguments;
  if (at && chats_.is_person(intent.to)) {
    // For a person it is a scheduled message, which keeps its time through every stop.
    BELFRY_CO_TRY(const chat::Session theirs, co_await chats_.private_session(intent.to, message_.to));
    note.told_in = theirs.id;
    tool = "schedule_private_message";
    arguments.object().field("send_at", zone_.iso(*at)).field("message_text", text);
  } else {
    arguments.object().field("to", intent.to).key("payload").object().field("text", text).end();
    if (at) arguments.field("schedule", zone_.iso(*at));
  }
  BELFRY_CO_TRY(const auto outcome, co_await call(tool, arguments.end().take(), note.told_in));
  if (!outcome.ok && (outcome.code == Errc::unknown_recipient || outcome.code == Errc::invalid_id))
    co_return co_await say(phrases().nobody(intent.to));
  if (!outcome.ok) co_return co_await say(phrases().failed(message_of(outcome.result)));
  if (!at) co_return co_await say(phrases().told(intent.to, intent.what));
  const auto answer = json::parse(outcome.result);
  if (answer && answer->kind == json::Kind::object)
    note.told = json::text_in(*answer, note.told_in.empty() ? "messageId" : "task_id");
  co_return co_await say(phrases().will_tell(intent.to, intent.what, *at), std::move(note));
}

// --- which ones ---

Task<Result<std::vector<TaskRow>>> Turn::pending() {
  BELFRY_CO_TRY(std::vector<TaskRow> rows, co_await tasks_in(""));
  BELFRY_CO_TRY(const auto others, co_await tellings());
  rows.insert(rows.end(), others.begin(), others.end());
  std::sort(rows.begin(), rows.end(), [](const TaskRow& a, const TaskRow& b) {
    return std::tie(a.at, a.made, a.id) < std::tie(b.at, b.made, b.id);
  });
  co_return rows;
}

Task<Result<std::vector<TaskRow>>> Turn::tasks_in(std::string session) {
  std::vector<TaskRow> rows;
  std::string next;
  for (int page = 0; page == 0 || (page < kTaskPagesMax && !next.empty()); ++page) {
    json::Writer arguments;
    arguments.object();
    if (!next.empty()) arguments.field("after", next);
    BELFRY_CO_TRY(const auto outcome,
                  co_await call("list_scheduled_private_messages", arguments.end().take(), session));
    if (!outcome.ok) co_return fail(outcome.code, message_of(outcome.result));
    for (TaskRow& row : read_tasks(outcome.result, next)) {
      row.session = session;
      rows.push_back(std::move(row));
    }
  }
  co_return rows;
}

// What others will be told: noted in the lines before this one, which do not change.
Task<Result<std::vector<TaskRow>>> Turn::tellings() {
  BELFRY_CO_TRY(const auto lines,
                co_await chats_.lines({.session = session_.id, .before = own_seq_, .limit = kLinesBackForTellings}));
  std::map<std::string, std::string> texts;
  std::set<std::string> sessions;
  bool some_delayed = false;
  for (auto line = lines.rbegin(); line != lines.rend() && texts.size() < kTellingsMax; ++line) {
    if (line->from != message_.to || line->source != chat::Source::agent) continue;
    const auto note = read_note(line->payload);
    if (!note || note->told.empty()) continue;
    texts.emplace(note->told, phrases().telling(note->intent.to, note->intent.what));
    some_delayed |= note->told_in.empty();
    if (!note->told_in.empty()) sessions.insert(note->told_in);
  }
  std::vector<TaskRow> rows;
  for (const std::string& session : sessions) {
    BELFRY_CO_TRY(const auto theirs, co_await tasks_in(session));
    for (TaskRow row : theirs) {
      if (!texts.contains(row.id)) continue;
      row.text = texts.at(row.id);
      rows.push_back(std::move(row));
    }
  }
  if (!some_delayed) co_return rows;
  json::Writer arguments;
  arguments.object().key("messageIds").array();
  for (const auto& [id, text] : texts)
    if (bus::parse_message_id(id)) arguments.value(id);
  BELFRY_CO_TRY(const auto outcome, co_await call("list_messages", arguments.end().end().take()));
  if (!outcome.ok) co_return fail(outcome.code, message_of(outcome.result));
  const std::vector<TaskRow> delayed = read_delayed(outcome.result, texts);
  rows.insert(rows.end(), delayed.begin(), delayed.end());
  co_return rows;
}

std::vector<TaskRow> Turn::numbered(const std::vector<int>& numbers, const std::vector<TaskRow>& rows) const {
  std::vector<TaskRow> chosen;
  const std::vector<std::string> order = listed_.empty() ? ids(rows) : listed_;
  for (const int number : numbers) {
    if (number < 1 || static_cast<std::size_t>(number) > order.size()) return {};
    const std::string& id = order[static_cast<std::size_t>(number) - 1];
    const auto is_it = [&id](const TaskRow& row) { return row.id == id; };
    const bool again = std::any_of(chosen.begin(), chosen.end(), is_it);
    if (!again) std::copy_if(rows.begin(), rows.end(), std::back_inserter(chosen), is_it);
  }
  return chosen;
}

bool Turn::fits(const Target& target, const TaskRow& row) const {
  const std::string text = lower(Phrases::subject(row.text));
  for (const std::string& said : target.words) {
    const std::string word = lower(said);
    const bool plural = word.size() > 3 && word.back() == 's';
    const bool there = has_word(text, word) || has_word(text, word + "s") ||
                       (plural && has_word(text, word.substr(0, word.size() - 1)));
    if (!there) return false;
  }
  if (!target.at) return true;
  const when::Reading& reading = *target.at;
  if (reading.end) return row.at >= reading.at && row.at < *reading.end;
  if (reading.day_only || reading.kind == when::ReadingKind::date) return local(row.at).date == local(reading.at).date;
  const auto same = [&](WallTime time) {
    return std::chrono::floor<std::chrono::minutes>(time) == std::chrono::floor<std::chrono::minutes>(row.at);
  };
  return same(reading.at) || std::any_of(reading.alternatives.begin(), reading.alternatives.end(), same);
}

std::vector<TaskRow> Turn::fitting(const Target& target, const std::vector<TaskRow>& rows) const {
  if (!target.numbers.empty()) {
    std::vector<TaskRow> chosen = numbered(target.numbers, rows);
    // Numbers and something else that does not fit: 5分钟后把第二个取消. Better asked.
    if (!std::all_of(chosen.begin(), chosen.end(), [&](const TaskRow& row) { return fits(target, row); })) return {};
    if (target.last && !chosen.empty()) chosen.push_back(newest_of(rows));
    return chosen;
  }
  std::vector<TaskRow> chosen;
  std::set<std::string> spared;
  for (const Target& one : target.except)
    for (const TaskRow& row : fitting(one, rows)) spared.insert(row.id);
  if (!target.except.empty() && spared.empty()) return {};  // all but one that is not there: better asked
  for (const TaskRow& row : rows)
    if (!spared.contains(row.id) && fits(target, row)) chosen.push_back(row);
  if (target.last && chosen.size() > 1) return {newest_of(chosen)};
  if (!chosen.empty() || target.each.empty()) return chosen;
  for (const Target& one : target.each) {
    const std::vector<TaskRow> found = fitting(one, rows);
    if (found.size() != 1) return {};
    chosen.push_back(found.front());
  }
  return chosen;
}

Task<Result<>> Turn::ask_which(Ask ask, Intent intent, std::vector<TaskRow> rows, bool none_fits) {
  if (rows.size() > kOfferedMax) rows.resize(kOfferedMax);
  std::vector<std::string> labels;
  for (const TaskRow& row : rows) {
    std::string label = phrases().task_label(listed(row));
    const std::string plain = label;
    for (int copy = 2; std::find(labels.begin(), labels.end(), label) != labels.end(); ++copy)
      label = fmt::format("{} ({})", plain, copy);
    labels.push_back(std::move(label));
  }
  labels.push_back(phrases().never_mind());
  intent.language = language_;
  co_return co_await say(phrases().ask_which(ask == Ask::cancel, none_fits),
                         {.ask = ask, .intent = std::move(intent), .tasks = ids(rows)}, std::move(labels));
}

Task<Result<>> Turn::list() {
  BELFRY_CO_TRY(auto rows, co_await pending());
  const bool more = rows.size() > kListedMax;
  if (more) rows.resize(kListedMax);
  std::vector<Listed> shown;
  for (const TaskRow& row : rows) shown.push_back(listed(row));
  co_return co_await say(phrases().list(shown, more), {.tasks = ids(rows)});
}

Task<Result<>> Turn::cancel(Utterance utterance) {
  const Target target = std::move(utterance.target);
  BELFRY_CO_TRY(auto rows, co_await pending());
  if (rows.empty()) co_return co_await say(phrases().nothing_scheduled());
  const bool only_one = target.says_nothing() && rows.size() == 1 && !utterance.unsure;
  std::vector<TaskRow> chosen;
  if (!target.says_nothing() || only_one) chosen = fitting(target, rows);
  const bool several_meant = target.all || target.last || !target.each.empty() || target.numbers.size() > 1;
  if (chosen.empty() || (chosen.size() > 1 && !several_meant))
    co_return co_await ask_which(Ask::cancel, {.wish = Wish::cancel}, chosen.empty() ? rows : chosen,
                                 chosen.empty() && !target.says_nothing());
  co_return co_await cancel_rows(std::move(chosen));
}

Task<Result<>> Turn::cancel_rows(std::vector<TaskRow> rows) {
  std::vector<std::string> done;
  for (const TaskRow& row : rows) {
    json::Writer arguments;
    arguments.object().field(row.delayed ? "messageId" : "task_id", row.id);
    const char* const tool = row.delayed ? "cancel_message" : "cancel_scheduled_private_message";
    BELFRY_CO_TRY(const auto outcome, co_await call(tool, arguments.end().take(), row.session));
    if (outcome.ok) done.push_back(row.text);
  }
  co_return co_await say(done.empty() ? phrases().too_late() : phrases().cancelled(done));
}

Task<Result<>> Turn::begin_move(Utterance utterance) {
  BELFRY_CO_TRY(auto rows, co_await pending());
  if (rows.empty()) co_return co_await say(phrases().nothing_scheduled());
  Intent intent = intent_of(utterance, now());
  const bool only_one = utterance.target.says_nothing() && rows.size() == 1;
  std::vector<TaskRow> chosen;
  if (!utterance.target.says_nothing() || only_one) chosen = fitting(utterance.target, rows);
  if (chosen.size() != 1)
    co_return co_await ask_which(Ask::move, std::move(intent), chosen.empty() ? rows : chosen,
                                 chosen.empty() && !utterance.target.says_nothing());
  intent.task = chosen.front().id;
  co_return co_await go_on(std::move(intent));
}

// "To 5pm" means the day on which it is, as long as that is still to come.
std::vector<WallTime> Turn::times_on_day_of(const std::vector<WallTime>& times, WallTime task_at) const {
  std::vector<WallTime> moved;
  for (const WallTime time : times) {
    const when::Local there{local(task_at).date, local(time).time};
    const WallTime at = zone_.instant(there);
    if (at > now()) moved.push_back(at);
  }
  std::sort(moved.begin(), moved.end());
  return moved.empty() ? times : moved;
}

Task<Result<>> Turn::move(Intent intent) {
  const Phrases say_it = phrases();
  BELFRY_CO_TRY(const auto rows, co_await pending());
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const TaskRow& one) { return one.id == intent.task; });
  if (row == rows.end()) co_return co_await say(say_it.too_late());
  if (intent.shift != Millis{0}) {
    intent.times = {row->at + intent.shift};
  } else if (intent.on_its_day) {
    intent.times = times_on_day_of(intent.times, row->at);
    intent.on_its_day = false;
  }
  if (intent.times.empty())
    co_return co_await say(say_it.ask_new_time(row->text), {.ask = Ask::new_time, .intent = intent},
                           say_it.usual_times());
  if (intent.times.size() > 1) {
    std::vector<std::string> labels;
    for (const WallTime time : intent.times) labels.push_back(say_it.time_label(time));
    co_return co_await say(say_it.ask_which_time(Phrases::subject(row->text)),
                           {.ask = Ask::which_time, .intent = intent}, labels);
  }
  const WallTime at = intent.times.front();
  if (at < now() - chat::kPastTolerated) co_return co_await say(say_it.past(at));
  json::Writer arguments;
  arguments.object().field(row->delayed ? "messageId" : "task_id", row->id);
  arguments.field(row->delayed ? "schedule" : "send_at", zone_.iso(at));
  const char* const tool = row->delayed ? "reschedule_message" : "reschedule_scheduled_private_message";
  BELFRY_CO_TRY(const auto outcome, co_await call(tool, arguments.end().take(), row->session));
  if (!outcome.ok && outcome.code == Errc::invalid_time) co_return co_await say(say_it.past(at));
  if (!outcome.ok) co_return co_await say(say_it.too_late());
  co_return co_await say(say_it.moved(row->text, at));
}

// --- hands ---

Task<Result<>> Turn::say(std::string text, Note note, std::vector<std::string> replies) {
  note.intent.language = language_;
  json::Writer payload;
  payload.object().field("text", text);
  const bool worth_noting = note.ask != Ask::nothing || !note.tasks.empty() || !note.told.empty();
  if (worth_noting) write_note(payload.key("concierge"), note);
  bus::Outgoing reply{.to = message_.from, .payload = payload.end().take(), .quick_replies = std::move(replies)};
  const auto sent = co_await hands_.send(std::move(reply));
  if (!sent && sent.error().code != Errc::unknown_recipient) co_return std::unexpected(sent.error());
  co_return Result<>{};
}

Task<Result<tool::CallOutcome>> Turn::call(std::string tool, std::string arguments, std::string session) {
  // The same call of the same turn, taken again after a crash, has no second effect.
  const std::string id = fmt::format("{}-{}", bus::to_text(message_.id), ++calls_);
  ToolUse use{.tool = std::move(tool), .arguments = std::move(arguments), .call_id = id, .session = std::move(session)};
  auto outcome = co_await hands_.use(std::move(use));
  if (outcome && !outcome->ok && is_passing(outcome->code)) co_return fail(outcome->code, message_of(outcome->result));
  co_return outcome;
}

class Concierge final : public Agent {
 public:
  Concierge(chat::Chats& chats, const bus::TimeReader& times) : chats_(chats), times_(times) {}

  Task<Result<>> handle(bus::Delivery message, Hands& hands) override {
    Turn turn(chats_, times_, std::move(message), hands);
    co_return co_await turn.take();
  }

 private:
  chat::Chats& chats_;
  const bus::TimeReader& times_;
};

}  // namespace

std::unique_ptr<Agent> make_concierge(chat::Chats& chats, const bus::TimeReader& times) {
  return std::make_unique<Concierge>(chats, times);
}

}  // namespace belfry::agent
