// belfry chat: a conversation with an agent, in the terminal.
//
// Two threads: one waits for the server's lines, the other for the keyboard. Whatever comes while somebody types is
// printed above what they type. If the server goes away, both go on trying; since lines have numbers and posts have keys,
// nothing is lost or said twice.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/app/line_editor.h"
#include "belfry/app/timezone.h"
#include "belfry/base/random.h"
#include "belfry/clock/real_clock.h"
#include "belfry/net/url.h"
#include "belfry/when/sentence.h"

namespace belfry::app {
namespace {

constexpr Millis kWaitForLines{25'000};
constexpr Millis kTryAgain{1'000};
// How long the end of a pipe waits for the answer to what it said last.
constexpr Millis kAnswerPatience{5'000};
constexpr int kHistoryShown = 10;
constexpr const char* kPrompt = "> ";
// How much of an answer is seen while it is written, and how often that is looked at.
constexpr std::size_t kDraftShown = 60;
constexpr Millis kDraftEvery{150};

struct Flags {
  Client client;
  std::string agent = "concierge";
  std::string person = "user";
  std::string session;
  std::string timezone;
  std::string stay;
};

WallTime now() { return round_down(read_real_clocks().wall); }

void pause(Millis duration) { ::poll(nullptr, 0, static_cast<int>(duration.count())); }

class Chat {
 public:
  explicit Chat(Flags& flags) : flags_(flags), client_(flags.client), zone_(system_zone()) {
    if (::isatty(0) == 1 && ::isatty(1) == 1) terminal_.emplace(kPrompt);
  }

  void run();

 private:
  struct Question {
    std::string id;
    std::vector<std::string> replies;
  };

  void open();
  std::string find_session();
  void greet();
  void listen();
  void watch_drafts();
  void show_draft();
  void type();
  std::optional<std::string> typed();
  void stay();
  void await_answer();

  // What is typed.
  void obey(const std::string& line);
  bool command(const std::string& line);
  void post(const std::string& text);
  void post_when_there_is_a_server(const std::string& body);
  std::vector<Answer> scheduled();
  void show_scheduled();
  std::optional<std::string> task(const std::string& number);
  void change_task(const std::string& name, const std::string& rest);
  void history(const std::string& count);

  // What is printed.
  void show(const Answer& line);
  void show_as_it_comes(const Answer& line);
  void print(const std::string& text);
  std::string clock_of(const std::string& iso) const;
  std::string moment_of(const std::string& iso) const;

  Flags& flags_;
  Client& client_;
  when::Zone zone_;
  std::optional<LineEditor> terminal_;  // none: a pipe
  std::string session_;
  std::vector<std::string> listed_;  // tasks, as /scheduled numbered them

  std::mutex printing_;
  std::mutex posting_;  // held while a post is under way: whether a line is our own is known only then
  std::mutex state_;
  std::condition_variable came_;
  std::int64_t seen_ = 0;
  bool listening_ = false;     // from then on what is new is shown by the one who listens
  std::int64_t answered_ = 0;  // the last line of somebody else's
  std::int64_t posted_ = 0;
  std::set<std::string> own_;
  std::optional<Question> question_;
  std::string draft_;  // as it is shown; only the one who watches drafts touches it
};

std::string Chat::clock_of(const std::string& iso) const {
  const auto at = parse_iso(iso);
  if (!at) return iso;
  const std::string there = zone_.iso(*at);
  const bool today = there.substr(0, 10) == zone_.iso(now()).substr(0, 10);
  return today ? there.substr(11, 8) : there.substr(0, 10) + " " + there.substr(11, 5);
}

std::string Chat::moment_of(const std::string& iso) const {
  const auto at = parse_iso(iso);
  if (!at) return iso;
  return fmt::format("{} ({})", clock_of(iso), when::distance(*at, now(), when::Language::english));
}

// --- opening ---

std::string Chat::find_session() {
  const std::string answer =
      client_.get(fmt::format("/v1/sessions?member={}&limit=500", net::percent_encoded(flags_.person)));
  for (const Answer& session : Answer(answer).list("sessions")) {
    const auto agents = session.texts("agents");
    if (session.text("kind") == "private" && agents.size() == 1 && agents[0] == flags_.agent)
      return session.text("sessionId");
  }
  return "";
}

void Chat::open() {
  session_ = flags_.session.empty() ? find_session() : flags_.session;
  if (!session_.empty()) {
    const Answer session(client_.get("/v1/sessions/" + net::percent_encoded(session_)));
    const auto people = session.texts("users");
    if (std::find(people.begin(), people.end(), flags_.person) == people.end())
      refuse(Errc::invalid_argument, fmt::format("\"{}\" is not in the session {}; --as names one of: {}",
                                                 flags_.person, session_, fmt::join(people, ", ")));
    const auto agents = session.texts("agents");
    if (!flags_.session.empty() && !agents.empty()) flags_.agent = fmt::format("{}", fmt::join(agents, ", "));
    return;
  }
  json::Writer writer;
  writer.object().field("kind", "private").field("user", flags_.person).field("agent", flags_.agent);
  writer.field("timezone", flags_.timezone.empty() ? zone_.name() : flags_.timezone);
  session_ = Answer(client_.post("/v1/sessions", writer.end().take())).text("sessionId");
}

void Chat::greet() {
  std::fprintf(stderr, "You are %s, talking with %s. /help lists the commands, Ctrl-D ends.\n", flags_.person.c_str(),
               flags_.agent.c_str());
  const Answer session(client_.get("/v1/sessions/" + session_));
  const std::int64_t last = session.number("lastSeq");
  if (last == 0) {
    std::fprintf(stderr, "Nothing was said yet. Try: remind me in 20 seconds to stretch / 20秒后提醒我喝水\n");
    return;
  }
  history(std::to_string(kHistoryShown));
}

// --- listening ---

void Chat::listen() {
  bool gone = false;
  while (true) {
    try {
      std::int64_t after = 0;
      {
        const std::scoped_lock lock(state_);
        after = seen_;
      }
      const std::string target =
          fmt::format("/v1/sessions/{}/messages?after={}&waitMs={}", session_, after, gone ? 0 : kWaitForLines.count());
      const Answer page(client_.get(target));
      if (gone) print("(the server is back)");
      gone = false;
      for (const Answer& line : page.list("messages")) show_as_it_comes(line);
    } catch (const Refusal& refusal) {
      if (!gone) print(fmt::format("({}; trying again)", refusal.error.detail));
      gone = true;
      pause(kTryAgain);
    }
  }
}

void Chat::show_as_it_comes(const Answer& line) {
  bool own = false;
  {
    const std::scoped_lock wait(posting_);
    own = own_.contains(line.text("messageId"));
  }
  if (!own) show(line);
  if (!own && terminal_) terminal_->set_prompt(kPrompt);
  const std::scoped_lock lock(state_);
  seen_ = line.number("seq");
  if (!own) answered_ = seen_;
  for (const std::string& closed : line.texts("closes"))
    if (question_ && question_->id == closed) question_.reset();
  const auto replies = line.texts("quickReplies");
  if (!replies.empty() && line.text("questionState") == "open") question_ = Question{line.text("messageId"), replies};
  came_.notify_all();
}

// --- what is being written ---

// While an answer is awaited, what there is of it so far stands before what is typed.
void Chat::watch_drafts() {
  while (true) {
    {
      std::unique_lock lock(state_);
      came_.wait(lock, [this] { return posted_ > answered_; });
    }
    try {
      show_draft();
    } catch (const Refusal&) {
      pause(kTryAgain);  // the one who listens says so
    }
    pause(kDraftEvery);
  }
}

void Chat::show_draft() {
  const Answer page(client_.get(fmt::format("/v1/sessions/{}/drafts", session_)));
  std::string shown;
  for (const Answer& draft : page.list("drafts")) {
    std::string text = printable(draft.text("text"));
    const std::size_t cut = text.size() > kDraftShown ? text.size() - kDraftShown : 0;
    std::size_t from = cut;
    while (from > 0 && from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
    shown = fmt::format("{}: {}{} ", draft.text("from"), cut > 0 ? "…" : "", text.substr(from));
  }
  if (shown == draft_) return;
  draft_ = shown;
  terminal_->set_prompt(shown + kPrompt);
}

// --- typing ---

std::optional<std::string> Chat::typed() {
  if (terminal_) return terminal_->read_line();
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

void Chat::type() {
  while (const auto line = typed()) {
    const std::string word = line->substr(0, line->find(' '));
    if (word == "/quit" || word == "/exit") return;
    try {
      obey(*line);
    } catch (const Refusal& refusal) {
      print(fmt::format("({})", refusal.error.detail));
    }
    if (!terminal_) await_answer();  // a pipe says nothing before it was answered, as a person would
  }
}

void Chat::obey(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string::npos) return;
  if (line[first] == '/' && command(line.substr(first))) return;
  post(line.substr(first));
}

bool Chat::command(const std::string& line) {
  const std::size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::size_t from = space == std::string::npos ? space : line.find_first_not_of(' ', space);
  const std::string rest = from == std::string::npos ? "" : line.substr(from);
  if (name == "/help") {
    print(
        "/scheduled           what is coming, with numbers\n"
        "/cancel N            do not say it\n"
        "/move N TIME         say it then: /move 1 tomorrow at 9, /move 1 明天早上9点\n"
        "/now N               say it now\n"
        "/stop                end what the agent is thinking about\n"
        "/history [N]         the last lines\n"
        "/say TEXT            say a text that begins with / or is a number\n"
        "/quit                end (Ctrl-D)\n"
        "A number presses that button of the last question.");
  } else if (name == "/scheduled") {
    show_scheduled();
  } else if (name == "/cancel" || name == "/move" || name == "/now") {
    change_task(name, rest);
  } else if (name == "/stop") {
    const Answer stopped(client_.post(fmt::format("/v1/sessions/{}:cancel", session_), "{}"));
    if (stopped.number("cancelled") == 0) print("(nobody is thinking)");
  } else if (name == "/history") {
    history(rest.empty() ? std::to_string(kHistoryShown * 2) : rest);
  } else if (name == "/say" && rest.empty()) {
    print("(say what? /say /usr/bin is full)");
  } else if (name == "/say") {
    const std::scoped_lock lock(state_);
    question_.reset();
    return false;
  } else {
    print(fmt::format("(there is no command {}; /help lists them, /say {} says it)", name, line));
  }
  return true;
}

// Tried again under its key until there is a server: said once.
void Chat::post_when_there_is_a_server(const std::string& body) {
  bool told = false;
  while (true) {
    try {
      const std::scoped_lock wait(posting_);
      const Answer posted(client_.post(fmt::format("/v1/sessions/{}/messages", session_), body));
      own_.insert(posted.text("messageId"));
      const std::scoped_lock lock(state_);
      posted_ = posted.number("seq");
      came_.notify_all();
      return;
    } catch (const Refusal& refusal) {
      if (refusal.exit_code != kExitNoServer) throw;
      if (!told) print(fmt::format("(not sent yet: {}; trying again)", refusal.error.detail));
      told = true;
    }
    pause(kTryAgain);
  }
}

void Chat::post(const std::string& text) {
  std::string said = text.starts_with("/say ") ? text.substr(5) : text;
  json::Writer writer;
  writer.object().field("from", flags_.person);
  std::optional<Question> question;
  {
    const std::scoped_lock lock(state_);
    question = question_;
  }
  int number = 0;
  const auto read = std::from_chars(said.data(), said.data() + said.size(), number);
  const bool presses = question && read.ec == std::errc{} && read.ptr == said.data() + said.size() && number >= 1 &&
                       static_cast<std::size_t>(number) <= question->replies.size();
  if (presses) {
    writer.field("inReplyTo", question->id).field("quickReplyIndex", number - 1);
    if (terminal_) print(fmt::format("-> {}", printable(question->replies[static_cast<std::size_t>(number - 1)])));
  } else {
    writer.field("text", said);
  }
  SystemRandom random;
  writer.field("key", fmt::format("chat-{:016x}{:016x}", random.next(), random.next()));
  post_when_there_is_a_server(writer.end().take());
}

// --- what is scheduled ---

std::vector<Answer> Chat::scheduled() {
  const Answer page(client_.get(fmt::format("/v1/scheduled?session_id={}&status=pending&limit=50", session_)));
  return page.list("tasks");
}

void Chat::show_scheduled() {
  const auto tasks = scheduled();
  listed_.clear();
  std::string text;
  for (const Answer& one : tasks) {
    listed_.push_back(one.text("task_id"));
    text += fmt::format("{}{:>3}. {}  {}", text.empty() ? "" : "\n", listed_.size(), moment_of(one.text("send_at")),
                        one.text("message_text"));
  }
  print(text.empty() ? "(nothing is scheduled)" : text);
}

std::optional<std::string> Chat::task(const std::string& number) {
  if (listed_.empty())
    for (const Answer& one : scheduled()) listed_.push_back(one.text("task_id"));
  std::size_t index = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), index);
  if (read.ec == std::errc{} && read.ptr == number.data() + number.size() && index >= 1 && index <= listed_.size())
    return listed_[index - 1];
  print(fmt::format("(\"{}\" is not a number from /scheduled, which has {})", number, listed_.size()));
  return std::nullopt;
}

void Chat::change_task(const std::string& name, const std::string& rest) {
  const std::size_t space = rest.find(' ');
  const std::string number = rest.substr(0, space);
  const std::string time = space == std::string::npos ? "" : rest.substr(space + 1);
  if (name == "/move" && time.empty()) return print("(to which time? /move 1 tomorrow at 9)");
  const auto id = task(number);
  if (!id) return;
  const std::string path = "/v1/scheduled/" + net::percent_encoded(*id);
  if (name == "/cancel") {
    client_.remove(path);
    print("(cancelled)");
  } else if (name == "/now") {
    client_.post(path + ":send", "");
  } else {
    json::Writer writer;
    writer.object().field("send_at", time);
    const Answer moved(client_.patch(path, writer.end().take()));
    print(fmt::format("(moved to {})", moment_of(moved.object("task").text("send_at"))));
  }
}

void Chat::history(const std::string& count) {
  int number = 0;
  const auto read = std::from_chars(count.data(), count.data() + count.size(), number);
  if (read.ec != std::errc{} || read.ptr != count.data() + count.size() || number < 1 || number > 500)
    return print(fmt::format("(\"{}\" is not a number of lines from 1 to 500)", count));
  const Answer page(
      client_.get(fmt::format("/v1/sessions/{}/messages?before=9007199254740991&limit={}", session_, number)));
  for (const Answer& line : page.list("messages")) {
    show(line);
    const std::scoped_lock lock(state_);
    if (!listening_) seen_ = std::max(seen_, line.number("seq"));
    if (line.has("quickReplies") && line.text("questionState") == "open")
      question_ = Question{line.text("messageId"), line.texts("quickReplies")};
  }
}

// --- printing ---

void Chat::show(const Answer& line) {
  const std::string indent(2, ' ');
  std::string shown = fmt::format("{} {}: ", clock_of(line.text("saidAt")), line.text("from"));
  for (const char c : line.has("text") ? line.text("text") : line.raw("payload")) {
    shown += c;
    if (c == '\n') shown += indent;
  }
  const Answer meta = line.object("payload").object("scheduled");
  if (meta.has("late_ms")) shown += fmt::format("  ({} late)", readable(Millis{meta.number("late_ms")}));
  int number = 0;
  const bool is_open = line.text("questionState") == "open";
  for (const std::string& reply : line.texts("quickReplies")) {
    ++number;
    const bool chosen = line.object("answer").has("index") && line.object("answer").number("index") == number - 1;
    shown += fmt::format("\n{}{}{}) {}", indent, chosen ? "*" : is_open ? "" : "-", number, reply);
  }
  print(shown);
}

void Chat::print(const std::string& text) {
  // Lines are ours, everything else in them is not.
  std::string shown;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    shown += printable(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  if (terminal_) return terminal_->print(std::move(shown));
  const std::scoped_lock lock(printing_);
  std::fputs(shown.c_str(), stdout);
  std::fflush(stdout);
}

// A pipe has ended: whoever wants to stays on.
void Chat::stay() {
  if (terminal_) return;
  pause(flags_.stay.empty() ? Millis{0} : duration_argument("--stay", flags_.stay));
}

void Chat::await_answer() {
  std::unique_lock lock(state_);
  came_.wait_for(lock, kAnswerPatience, [this] { return answered_ >= posted_; });
}

void Chat::run() {
  if (!flags_.stay.empty()) duration_argument("--stay", flags_.stay);
  open();
  greet();
  client_.throw_refusals();  // from here on the conversation outlives them
  listening_ = true;
  std::thread([this] { listen(); }).detach();
  if (terminal_) std::thread([this] { watch_drafts(); }).detach();
  type();
  if (!terminal_ && std::ferror(stdin) != 0) {
    std::fprintf(stderr, "error: stdin cannot be read\n");
    ::_exit(kExitUsage);
  }
  stay();
  // The listener may wait for the server's next line; nobody waits for it.
  ::_exit(all_printed() ? kExitDone : kExitRefused);
}

}  // namespace

void add_chat(CLI::App& app) {
  CLI::App* const command = add_command(app, "chat", "Talk with an agent in the terminal");
  auto flags = std::make_shared<Flags>();
  command->add_option("agent", flags->agent, "Whom to talk with; the concierge if not given");
  command->add_option("--as", flags->person, "Who you are; \"user\" if not given");
  command->add_option("--session", flags->session, "This conversation, whoever is in it");
  command->add_option("--timezone", flags->timezone, "In which times are read in a new conversation; this machine's");
  command->add_option("--stay", flags->stay, "How long to listen on when the input ends, like 30s");
  flags->client.add_options(*command);
  on_run(command, [flags] {
    check_name_argument("agent", flags->agent);
    check_name_argument("--as", flags->person);
    Chat(*flags).run();
  });
}

}  // namespace belfry::app
