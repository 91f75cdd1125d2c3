#include "belfry/server/hub.h"

#include <rapidcheck.h>

#include <deque>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "belfry/server/frames.h"
#include "tests/support/world.h"

namespace belfry::server {
namespace {

using testing::World;
using namespace std::chrono_literals;

std::string field(std::string_view frame, std::string_view name) {
  const auto whole = json::parse(frame);
  EXPECT_TRUE(whole.has_value()) << frame;
  const auto found = json::find(*whole, name);
  if (!found) return "";
  return found->kind == json::Kind::string ? json::text(*found) : std::string(found->raw);
}

// A client's end of the wire, as the hub sees it.
class TestSocket final : public Socket {
 public:
  Task<std::optional<std::string>> receive() override {
    while (incoming_.empty() && !over_)
      co_await suspend<int>([this](Resume<int> resume) { waiting_ = std::move(resume); });
    if (incoming_.empty()) co_return std::nullopt;
    std::string text = std::move(incoming_.front());
    incoming_.pop_front();
    co_return text;
  }
  bool has_room(std::size_t) const override { return reads_ || waiting_frames_ == 0; }
  void send(SharedFrame frame) override {
    net::websocket::Reader reader(net::websocket::Side::client, 1u << 22);
    std::string_view bytes = frame->bytes;
    const auto read = reader.next(bytes);
    ASSERT_TRUE(read && *read);
    frames.push_back((*read)->payload);
    if (!reads_) ++waiting_frames_;
  }
  Task<void> drained() override {
    while (waiting_frames_ > 0 && !over_)
      co_await suspend<int>([this](Resume<int> resume) { draining_.push_back(std::move(resume)); });
  }
  // Whether it takes what it is sent. `frames` has what was handed over, read or not.
  void set_reads(bool reads) {
    reads_ = reads;
    if (!reads) return;
    waiting_frames_ = 0;
    for (Resume<int>& resume : std::exchange(draining_, {})) resume(0);
  }
  void close(int code, std::string_view reason) override {
    close_code = code;
    close_reason = reason;
    end();
  }

  void proved() override { trusted = true; }

  void say(std::string text) {
    incoming_.push_back(std::move(text));
    wake();
  }
  void end() {
    over_ = true;
    wake();
    set_reads(true);
  }
  std::vector<std::string> of(std::string_view op) const {
    std::vector<std::string> found;
    for (const std::string& frame : frames)
      if (field(frame, "op") == op) found.push_back(frame);
    return found;
  }
  std::vector<std::int64_t> seqs() const {
    std::vector<std::int64_t> all;
    for (const std::string& frame : of("message")) all.push_back(std::stoll(field(frame, "seq")));
    return all;
  }

  std::vector<std::string> frames;
  int close_code = 0;
  bool trusted = false;
  std::string close_reason;

 private:
  void wake() {
    if (waiting_) std::exchange(waiting_, nullptr)(0);
  }
  std::deque<std::string> incoming_;
  Resume<int> waiting_;
  std::vector<Resume<int>> draining_;
  int waiting_frames_ = 0;
  bool reads_ = true;
  bool over_ = false;
};

// Answers of the store that arrive when the test says so, in any order. Let go of all of them before the world ends.
class LateAnswers {
 public:
  World::Options options() {
    World::Options options;
    options.store.hold_answer = [this](std::move_only_function<void()>& answer) {
      if (holding) held_.push_back(std::move(answer));
      return holding;
    };
    return options;
  }
  std::size_t held() const { return held_.size(); }
  void release(std::size_t index) {
    auto answer = std::move(held_.at(index));
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    answer();
  }

  bool holding = false;

 private:
  std::deque<std::move_only_function<void()>> held_;
};

// The hub of one life of the world, with its clients.
struct Panels {
  explicit Panels(World& world, std::string token = "")
      : w(world),
        guard({.listen_host = "127.0.0.1", .port = 1, .allow_hosts = {}, .token = std::move(token)}),
        tasks(w.context()),
        hub(w.context(), w.clock(), w.bus(), w.chats(), w.runs(), guard, tasks, "Asia/Shanghai") {
    hub.add_to(router);
  }
  ~Panels() {
    for (auto& socket : sockets) socket->end();
    w.clock().settle();
  }

  TestSocket& connect() {
    sockets.push_back(std::make_unique<TestSocket>());
    Request request;
    request.method = Method::get;
    request.path = "/v1/ws";
    std::string allow;
    const auto route = router.find(request, allow);
    tasks.spawn("client", (*route)->socket(Request(), *sockets.back()));
    w.clock().settle();
    return *sockets.back();
  }
  void say(TestSocket& socket, std::string text) {
    socket.say(std::move(text));
    w.clock().settle();
  }
  TestSocket& connect_to(const std::string& session, std::int64_t after = 0, const std::string& person = "ann") {
    TestSocket& socket = connect();
    say(socket,
        fmt::format(R"({{"op":"hello","person":"{}","sessions":[{{"id":"{}","after":{}}}]}})", person, session, after));
    return socket;
  }

  World& w;
  Guard guard;
  Router router;
  TaskGroup tasks;
  std::vector<std::unique_ptr<TestSocket>> sockets;
  Hub hub;
};

class HubTest : public ::testing::Test {
 protected:
  HubTest() {
    w.add("bot");
    session = open("ann", "bot");
  }
  std::string open(const std::string& person, const std::string& agent) {
    return w.run(w.chats().open({.people = {person}, .agents = {agent}}))->session.id;
  }
  void post(const std::string& text) { ASSERT_TRUE(w.run(w.chats().post({.session = session, .text = text}))); }
  bus::Sent tell(std::string payload, Millis delay = 0ms) {
    auto sent =
        w.send({.to = "ann", .from = "bot", .payload = std::move(payload), .session_id = session, .delay = delay});
    w.clock().settle();
    return sent;
  }

  World w;
  std::string session;
};

// G9
TEST_F(HubTest, AClientHearsWhatItMissedAndThenWhatIsSaid) {
  for (int i = 1; i <= 450; ++i) post(fmt::format("line {}", i));
  Panels panels(w);
  TestSocket& socket = panels.connect_to(session, 3);
  EXPECT_EQ(field(socket.frames.at(0), "op"), "welcome");
  EXPECT_EQ(field(socket.frames.at(0), "timezone"), "Asia/Shanghai");
  ASSERT_EQ(socket.seqs().size(), 447u);
  EXPECT_EQ(field(socket.frames.back(), "op"), "caughtUp");
  post("and one more");
  EXPECT_EQ(socket.seqs().back(), 451);
  EXPECT_EQ(field(socket.frames.back(), "text"), "and one more");
}

// G9: the last page was empty when it was read, and by the time it arrives something has been said.
TEST(Hub, WhatIsSaidWhileAPanelCatchesUpIsNotMissed) {
  LateAnswers answers;
  World w(answers.options());
  w.add("bot");
  const std::string session = w.run(w.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
  const auto post = [&](const char* text) { ASSERT_TRUE(w.run(w.chats().post({.session = session, .text = text}))); };
  post("before");
  Panels panels(w);
  answers.holding = true;
  TestSocket& socket = panels.connect_to(session);
  for (const char* const read : {"whose chat it is", "the page with the line"}) {
    ASSERT_EQ(answers.held(), 1u) << read;
    answers.release(0);
    w.clock().settle();
  }
  ASSERT_EQ(answers.held(), 1u);  // the page that shows that there is no more
  EXPECT_EQ(socket.seqs(), std::vector<std::int64_t>{1});
  answers.holding = false;

  post("meanwhile");
  EXPECT_TRUE(socket.of("caughtUp").empty());
  answers.release(0);
  w.clock().settle();

  EXPECT_EQ(socket.seqs(), (std::vector<std::int64_t>{1, 2}));
  ASSERT_EQ(socket.of("caughtUp").size(), 1u);
  EXPECT_EQ(field(socket.of("caughtUp")[0], "seq"), "2");
  post("afterwards");
  EXPECT_EQ(socket.seqs(), (std::vector<std::int64_t>{1, 2, 3}));
}

// G9, G16: what is said is on the disk, so nothing of it is kept for a panel that does not read.
TEST_F(HubTest, LinesWaitOnTheDiskForAPanelThatDoesNotRead) {
  Panels panels(w);
  TestSocket& socket = panels.connect_to(session);
  TestSocket& other = panels.connect_to(session);
  socket.set_reads(false);
  for (int i = 0; i < 300; ++i) post("x");
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(w.run(w.chats().draft(session, {.id = "d1", .from = "bot", .text = fmt::format("so far: {}", i)})));
  EXPECT_EQ(other.seqs().size(), 300u);
  EXPECT_EQ(socket.seqs().size(), 1u);
  EXPECT_TRUE(socket.of("draft").empty());
  EXPECT_EQ(socket.of("caughtUp").size(), 1u);

  for (int i = 0; i < 20; ++i) {  // it takes one frame now and then
    socket.set_reads(true);
    socket.set_reads(false);
    w.clock().settle();
  }
  EXPECT_LT(socket.seqs().size(), 40u);
  socket.set_reads(true);
  w.clock().settle();
  EXPECT_EQ(socket.seqs(), other.seqs());
  EXPECT_EQ(socket.of("caughtUp").size(), 2u) << "from here on the panel reads anew what changes";
  ASSERT_EQ(socket.of("draft").size(), 1u);
  EXPECT_EQ(field(socket.of("draft")[0], "text"), "so far: 4");
  post("and on");
  EXPECT_EQ(socket.seqs().size(), 301u);
}

// G16
TEST_F(HubTest, TheEndOfADraftIsToldAlsoToAPanelThatDoesNotRead) {
  Panels panels(w);
  TestSocket& socket = panels.connect_to(session);
  ASSERT_TRUE(w.run(w.chats().draft(session, {.id = "d1", .from = "bot", .text = "Once"})));
  socket.set_reads(false);
  post("x");
  post("y");
  ASSERT_TRUE(w.run(w.chats().draft(session, {.id = "d1", .from = "bot", .text = ""})));
  socket.set_reads(true);
  w.clock().settle();
  EXPECT_EQ(field(socket.of("draft").back(), "done"), "true");
  EXPECT_EQ(socket.seqs().size(), 2u);
}

// G9: whatever is said meanwhile, whoever comes, goes, comes again or does not read, however late the store answers: each
// number once, in order, without gaps.
RC_GTEST_PROP(Hub, EachNumberComesOnceAndInOrder, ()) {
  LateAnswers answers;
  World w(answers.options());
  w.add("bot");
  const std::string session = w.run(w.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
  Panels panels(w);
  struct Viewer {
    TestSocket* socket;
    std::int64_t after;
  };
  std::vector<Viewer> viewers;
  std::int64_t said = 0;
  std::vector<World::Pending<Result<chat::Posted>>> on_their_way;
  const auto release_one = [&] {
    answers.release(*rc::gen::inRange<std::size_t>(0, answers.held()));
    w.clock().settle();
  };
  const int steps = *rc::gen::inRange(5, 40);
  for (int i = 0; i < steps; ++i) {
    const int what = *rc::gen::inRange(0, 10);
    if (what <= 2) {  // several at once, of which some are told in one turn of the loop
      for (int j = *rc::gen::inRange(1, 4); j > 0; --j, ++said)
        on_their_way.push_back(w.start_task(w.chats().post({.session = session, .text = "x"})));
      if (*rc::gen::inRange(0, 2) == 0) w.clock().settle();
    } else if (what == 3) {
      answers.holding = !answers.holding;
    } else if (what == 4) {
      if (answers.held() > 0) release_one();
    } else if (what >= 8 && !viewers.empty()) {
      viewers[*rc::gen::inRange<std::size_t>(0, viewers.size())].socket->set_reads(what == 9);
      if (*rc::gen::inRange(0, 2) == 0) w.clock().settle();
    } else if (what <= 6 || viewers.empty()) {
      const std::int64_t after = *rc::gen::inRange<std::int64_t>(0, said + 1);
      viewers.push_back({&panels.connect_to(session, after), after});
    } else {
      const Viewer& viewer = viewers[*rc::gen::inRange<std::size_t>(0, viewers.size())];
      const auto seen = viewer.socket->seqs();
      const std::int64_t last = seen.empty() ? viewer.after : seen.back();
      panels.say(*viewer.socket, fmt::format(R"({{"op":"subscribe","session":"{}","after":{}}})", session, last));
    }
  }
  answers.holding = false;
  for (const Viewer& viewer : viewers) viewer.socket->set_reads(true);
  while (answers.held() > 0) release_one();
  w.clock().settle();
  for (const Viewer& viewer : viewers) {
    const auto seen = viewer.socket->seqs();
    RC_ASSERT(seen.size() == static_cast<std::size_t>(said - viewer.after));
    for (std::size_t i = 0; i < seen.size(); ++i) RC_ASSERT(seen[i] == viewer.after + 1 + static_cast<std::int64_t>(i));
  }
}

// G9: a repeat under the same key says nothing twice, and both are told where it stands.
TEST_F(HubTest, WhatAClientSaysIsSaidOnce) {
  Panels panels(w);
  TestSocket& socket = panels.connect_to(session);
  const std::string frame = fmt::format(R"({{"op":"send","session":"{}","text":"hello","key":"k1"}})", session);
  panels.say(socket, frame);
  panels.say(socket, frame);
  EXPECT_EQ(socket.seqs(), std::vector<std::int64_t>{1});
  ASSERT_EQ(socket.of("sent").size(), 2u);
  EXPECT_EQ(socket.of("sent")[0], socket.of("sent")[1]);
  EXPECT_EQ(w.counts("bot").pending, 1);
}

// Q7
TEST_F(HubTest, OfTwoWhoPressOneWinsAndTheOtherIsTold) {
  Panels panels(w);
  TestSocket& first = panels.connect_to(session);
  TestSocket& second = panels.connect_to(session);
  tell(R"({"text":"tea?","quickReplies":["yes","no"]})");
  const std::string question = field(first.frames.back(), "messageId");
  const auto press = [&](int index, const char* key) {
    return fmt::format(R"({{"op":"send","session":"{}","inReplyTo":"{}","quickReplyIndex":{},"text":"","key":"{}"}})",
                       session, question, index, key);
  };
  first.say(press(0, "a"));
  second.say(press(1, "b"));
  w.clock().settle();
  EXPECT_EQ(first.of("sent").size() + second.of("sent").size(), 1u);
  const auto told = first.of("error").empty() ? second.of("error") : first.of("error");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(field(told[0], "error"), "already_answered");
  EXPECT_EQ(first.seqs(), second.seqs());
}

// G19
TEST_F(HubTest, WithoutTheTokenNothingIsHeard) {
  Panels panels(w, "secret");
  post("private");
  for (const std::string hello :
       {R"({"op":"hello","person":"ann","sessions":[]})", R"({"op":"hello","token":"wrong","person":"ann"})"}) {
    TestSocket& socket = panels.connect();
    panels.say(socket, hello);
    EXPECT_EQ(socket.close_code, 4401);
    EXPECT_TRUE(socket.frames.empty());
    EXPECT_FALSE(socket.trusted);
  }
  TestSocket& socket = panels.connect();
  panels.say(socket,
             fmt::format(R"({{"op":"hello","token":"secret","person":"ann","sessions":[{{"id":"{}"}}]}})", session));
  EXPECT_EQ(socket.seqs().size(), 1u);
  EXPECT_TRUE(socket.trusted);
}

TEST_F(HubTest, WhoeverDoesNotBeginWithAHelloIsSentAway) {
  Panels panels(w);
  for (const std::string text : {R"({"op":"ping"})", "nonsense", R"({"op":"hello","person":"nobody"})",
                                 R"({"op":"hello","sessions":[{"after":1}]})"}) {
    TestSocket& socket = panels.connect();
    panels.say(socket, text);
    EXPECT_EQ(socket.close_code, 4400) << text;
  }
  TestSocket& silent = panels.connect();
  panels.hub.tick();
  EXPECT_EQ(silent.close_code, 0);
  w.advance(10s);
  panels.hub.tick();
  EXPECT_EQ(silent.close_code, 4400);
}

// G19: somebody else's chat does not exist.
TEST_F(HubTest, OthersChatsAreNotShown) {
  open("bob", "bot");
  Panels panels(w);
  post("private");
  TestSocket& socket = panels.connect_to(session, 0, "bob");
  EXPECT_TRUE(socket.seqs().empty());
  EXPECT_EQ(field(socket.of("error").at(0), "error"), "not_found");
  post("more");
  EXPECT_TRUE(socket.seqs().empty());
  EXPECT_TRUE(socket.of("activity").empty());
}

TEST_F(HubTest, AFrameThatMakesNoSenseIsAnsweredAndHarmsNothing) {
  Panels panels(w);
  TestSocket& socket = panels.connect_to(session);
  for (const char* const text :
       {"[]", "{", R"({"op":"sing"})", R"({"op":"send","session":"x","text":"y"})", R"({"op":"send","key":1})",
        R"({"op":"subscribe"})", R"({"op":"subscribe","session":"x","after":-1})", R"({"op":"hello"})",
        R"({"op":"ping","loud":true})", R"({"op":"send","session":"nowhere","text":"y","key":"k"})"})
    panels.say(socket, text);
  EXPECT_EQ(socket.of("error").size(), 10u);
  EXPECT_EQ(socket.close_code, 0);
  panels.say(socket, R"({"op":"ping"})");
  EXPECT_EQ(socket.of("pong").size(), 1u);
}

// A8: what happens in other chats of the person is said in short.
TEST_F(HubTest, OtherChatsOfThePersonMakeThemselvesKnown) {
  w.add("cat");
  const std::string other = open("ann", "cat");
  Panels panels(w);
  TestSocket& socket = panels.connect_to(other);
  std::string text;
  for (int i = 0; i < 300; ++i) text += "钟";
  tell(fmt::format(R"({{"text":"{}"}})", text));
  const auto heard = socket.of("activity");
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(field(heard[0], "session"), session);
  EXPECT_EQ(field(heard[0], "text").size(), 600u);
  EXPECT_TRUE(socket.seqs().empty());
}

// D11, P10
TEST_F(HubTest, WhatIsComingIsToldWhenItChanges) {
  Panels panels(w);
  TestSocket& socket = panels.connect_to(session);
  std::size_t told = 0;
  const auto changed = [&] {
    w.clock().settle();
    const std::size_t before = std::exchange(told, socket.of("coming").size());
    return told > before;
  };
  const auto task = *w.run(w.scheduled().create({.session = session, .text = "x", .send_at = testing::kNoon + 1h}));
  EXPECT_TRUE(changed());
  ASSERT_TRUE(w.run(w.scheduled().change(task.message.id, "", {.send_at = testing::kNoon + 2h})));
  EXPECT_TRUE(changed());
  ASSERT_TRUE(w.run(w.scheduled().cancel(task.message.id, "", "")));
  EXPECT_TRUE(changed());
  const auto sent = tell(R"({"text":"later"})", 1h);
  EXPECT_TRUE(changed());
  ASSERT_TRUE(w.run(w.bus().reschedule_after(sent.id, 3h)));
  EXPECT_TRUE(changed());
  panels.hub.tick();
  EXPECT_EQ(field(socket.of("counts").at(0), "mine"), "1");
  panels.hub.tick();
  EXPECT_EQ(socket.of("counts").size(), 1u);  // nothing new
  ASSERT_TRUE(w.run(w.bus().cancel(sent.id, "ann")));
  EXPECT_TRUE(changed());
  tell(R"({"text":"soon"})", 1s);
  EXPECT_TRUE(changed());
  w.advance(1s);
  EXPECT_TRUE(changed());
  post("nothing of that kind");
  EXPECT_FALSE(changed());
}

// A3
TEST_F(HubTest, ADraftGrowsAndGivesWayToItsLine) {
  Panels panels(w);
  TestSocket& early = panels.connect_to(session);
  ASSERT_TRUE(w.run(w.chats().draft(session, {.id = "d1", .from = "bot", .text = "Once"})));
  ASSERT_TRUE(w.run(w.chats().draft(session, {.id = "d1", .from = "bot", .text = "Once upon"})));
  TestSocket& late = panels.connect_to(session);  // a reload in the middle
  EXPECT_EQ(early.of("draft").size(), 2u);
  ASSERT_EQ(late.of("draft").size(), 1u);
  EXPECT_EQ(field(late.of("draft")[0], "text"), "Once upon");
  tell(R"({"text":"Once upon a time","draftId":"d1"})");
  EXPECT_EQ(field(late.of("draft").back(), "done"), "true");
  EXPECT_EQ(late.seqs().size(), 1u);
  EXPECT_TRUE(panels.connect_to(session).of("draft").empty());
}

// A3
TEST_F(HubTest, APersonOfTheChatCanTellItsAgentToStop) {
  open("bob", "bot");
  Panels panels(w);
  TestSocket& ann = panels.connect_to(session);
  TestSocket& bob = panels.connect_to(session, 0, "bob");
  const auto stop = [&](TestSocket& socket, const std::string& where, const std::string& whom) {
    panels.say(socket, fmt::format(R"({{"op":"stop","session":"{}","agent":"{}"}})", where, whom));
  };
  stop(ann, session, "bot");  // nobody listens yet
  EXPECT_TRUE(ann.of("error").empty());
  std::vector<std::string> told;
  panels.hub.on_stop([&](std::string where, std::string whom) { told.push_back(where + " " + whom); });

  stop(ann, session, "bot");
  EXPECT_EQ(told, std::vector<std::string>{session + " bot"});
  stop(ann, session, "ann");
  stop(ann, "nowhere", "bot");
  stop(bob, session, "bot");
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(field(ann.of("error").at(0), "error"), "invalid_argument");
  EXPECT_EQ(field(ann.of("error").at(1), "error"), "not_found");
  EXPECT_EQ(field(bob.of("error").back(), "error"), "not_found");
}

TEST_F(HubTest, ADraftThatNobodyWritesAnyMoreIsOver) {
  Panels panels(w);
  TestSocket& socket = panels.connect_to(session);
  ASSERT_TRUE(w.run(w.chats().draft(session, {.id = "d1", .from = "bot", .text = "Once"})));
  w.advance(5min + 1ms);
  panels.hub.tick();
  EXPECT_EQ(field(socket.of("draft").back(), "done"), "true");
  EXPECT_EQ(w.run(w.chats().draft(session, {.id = "", .from = "bot", .text = "x"})).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(w.run(w.chats().draft(session, {.id = "d", .from = "cat", .text = "x"})).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(w.run(w.chats().draft(session, {.id = "d", .from = "bot", .text = std::string(100'001, 'x')})).error().code,
            Errc::too_large);
}

class HubRunsTest : public ::testing::Test {
 protected:
  static World::Options options() {
    World::Options options;
    options.plugins = {testing::make_plugin({.name = "tool", .takes_schedule = true})};
    return options;
  }
  HubRunsTest() : w(options()) {
    w.add("bot");
    session = w.run(w.chats().open({.people = {"ann"}, .agents = {"bot"}}))->session.id;
    w.host().jobs["tool"] = {{.takes = 5s, .progress = {R"({"percent":10})"}}};
  }
  std::string begin(const std::string& where) {
    run::NewRun wanted{.plan = {}, .overlays = {}, .agent = "bot", .session = where};
    wanted.plan.steps.push_back({.tool = "local__tool",
                                 .arguments = R"({"schedule":"in 10 seconds"})",
                                 .schedule = std::nullopt,
                                 .depends_on = {}});
    return w.run(w.runs().create(std::move(wanted)))->run.id;
  }
  static std::vector<std::string> states(const TestSocket& socket) {
    std::vector<std::string> all;
    for (const std::string& frame : socket.of("run")) {
      const auto run = json::find(*json::parse(frame), "run");
      const auto steps = json::find(*run, "steps");
      all.push_back(json::text_in(json::elements(*steps).front(), "state"));
    }
    return all;
  }

  World w;
  std::string session;
};

// F8
TEST_F(HubRunsTest, PanelsOfAChatSeeHowItsRunsGo) {
  Panels panels(w);
  TestSocket& socket = panels.connect_to(session);
  begin(session);
  w.advance(20s);
  EXPECT_EQ(states(socket), (std::vector<std::string>{"waiting", "running", "held", "reported"}));
  ASSERT_EQ(socket.of("runProgress").size(), 1u);
  EXPECT_NE(socket.of("runProgress")[0].find(R"("progress":{"percent":10})"), std::string::npos);
  EXPECT_EQ(socket.seqs(), std::vector<std::int64_t>{1});
}

// F8
TEST_F(HubRunsTest, EventsOfARunAreHeardFromAnyNumberInOrderAndOnce) {
  Panels panels(w);
  const std::string id = begin(session);
  TestSocket& socket = panels.connect_to(session);
  panels.say(socket, fmt::format(R"({{"op":"watchRun","runId":"{}","after":1}})", id));
  w.advance(20s);
  std::vector<std::string> types;
  for (const std::string& frame : socket.of("runEvent"))
    types.push_back(json::text_in(*json::find(*json::parse(frame), "event"), "type"));
  EXPECT_EQ(types, (std::vector<std::string>{"plan", "args", "tool_result", "done"}));
}

// G16
TEST_F(HubRunsTest, EventsOfARunWaitOnTheDiskForAPanelThatDoesNotRead) {
  Panels panels(w);
  const std::string id = begin(session);
  TestSocket& socket = panels.connect_to(session);
  panels.say(socket, fmt::format(R"({{"op":"watchRun","runId":"{}","after":1}})", id));
  const std::size_t before = socket.of("runEvent").size();
  socket.set_reads(false);
  w.advance(20s);
  EXPECT_LE(socket.of("runEvent").size(), before + 1);
  socket.set_reads(true);
  w.clock().settle();
  std::vector<std::string> seqs;
  for (const std::string& frame : socket.of("runEvent"))
    seqs.push_back(json::text_in(*json::find(*json::parse(frame), "event"), "type"));
  EXPECT_EQ(seqs, (std::vector<std::string>{"plan", "args", "tool_result", "done"}));
}

// F8, G20
TEST_F(HubRunsTest, RunsOfSomebodyElsesChatAreNotHeard) {
  Panels panels(w);
  const std::string other = w.run(w.chats().open({.people = {"bob"}, .agents = {"bot"}}))->session.id;
  const std::string id = begin(session);
  TestSocket& socket = panels.connect_to(other, 0, "bob");
  panels.say(socket, fmt::format(R"({{"op":"watchRun","runId":"{}"}})", id));
  panels.say(socket, R"({"op":"watchRun","runId":"nobody"})");
  w.advance(20s);
  EXPECT_TRUE(socket.of("run").empty());
  EXPECT_TRUE(socket.of("runEvent").empty());
  ASSERT_EQ(socket.of("error").size(), 2u);
  EXPECT_EQ(field(socket.of("error")[0], "error"), "not_found");
}

}  // namespace
}  // namespace belfry::server
