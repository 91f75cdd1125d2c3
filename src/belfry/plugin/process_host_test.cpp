// Real plugins, each badly behaved in its own way, under the real program as their guard. No test waits for time to pass:
// each waits for the end of its plugin, and looks that nothing of it is left.
#include "belfry/plugin/process_host.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "belfry/base/json.h"
#include "belfry/base/utf8.h"
#include "belfry/clock/real_clock.h"
#include "belfry/plugin/walls.h"
#include "tests/support/scratch_folder.h"

namespace belfry::plugin {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// For what must not happen: long enough that no machine is too slow.
constexpr Millis kLong = 120s;
constexpr Millis kShort = 200ms;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Processes whose environment speaks of this folder: plugins have it as HOME, and so has whatever they fork.
std::vector<std::string> processes_of(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code ec;
  for (fs::directory_iterator at("/proc", ec), end; !ec && at != end; at.increment(ec)) {
    if (read_file(at->path() / "environ").find(folder.string()) == std::string::npos) continue;
    out.push_back(at->path().filename().string() + " " + read_file(at->path() / "cmdline"));
  }
  return out;
}

class PluginHostTest : public ::testing::Test {
 protected:
  void TearDown() override { stop(); }

  void SetUp() override { make_host({.guard = BELFRY_PROGRAM, .term_grace = kShort}); }

  void make_host(HostOptions options) { host_.emplace(context_, clock_, std::move(options)); }

  std::shared_ptr<Plugin> plugin(const std::string& name, const std::string& script) {
    const fs::path folder = root_ / name;
    fs::create_directories(folder);
    std::ofstream(folder / "handler") << script;
    fs::permissions(folder / "handler", fs::perms::owner_all);
    auto out = std::make_shared<Plugin>(Plugin{.name = name, .timeout = kLong, .folder = folder});
    out->command = {(folder / "handler").string()};
    return out;
  }
  std::shared_ptr<Plugin> shell(const std::string& script) { return plugin("example", "#!/bin/sh\n" + script); }
  std::shared_ptr<Plugin> python(const std::string& script) {
    return plugin("example", "#!/usr/bin/python3\nimport json, os, signal, sys, time\n" + script);
  }

  static Job job_of(std::shared_ptr<const Plugin> plugin, std::string arguments = "{}") {
    const Millis timeout = plugin->timeout;
    return {.plugin = std::move(plugin), .arguments = std::move(arguments), .context = "{}", .timeout = timeout};
  }

  // Begins it; `wait` runs the loop until it has its outcome.
  struct Running {
    std::optional<Outcome> outcome;
    std::vector<std::string> progress;
    std::shared_ptr<Cancel> cancel = std::make_shared<Cancel>();
    std::function<void()> on_progress;
  };
  std::shared_ptr<Running> begin(Job job) {
    auto running = std::make_shared<Running>();
    const auto progress = [running = running.get()](std::string text) {
      running->progress.push_back(std::move(text));
      if (running->on_progress) running->on_progress();
    };
    asio::co_spawn(context_, host_->perform(std::move(job), progress, running->cancel),
                   [running](std::exception_ptr failed, Outcome outcome) {
                     if (failed) std::rethrow_exception(failed);
                     running->outcome = std::move(outcome);
                   });
    return running;
  }
  Outcome wait(const std::shared_ptr<Running>& running) {
    run_until([&] { return running->outcome.has_value(); });
    return *running->outcome;
  }
  Outcome run(Job job) { return wait(begin(std::move(job))); }
  Outcome run(std::shared_ptr<const Plugin> plugin) { return run(job_of(std::move(plugin))); }

  // Of a plugin that is not persistent: whatever it did, nothing of it is there any more, not even a zombie.
  void expect_nothing_left() {
    EXPECT_EQ(processes_of(root_), std::vector<std::string>{});
    errno = 0;
    EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD) << "a child is left";
  }
  void expect_failure(const Outcome& outcome, std::string_view code, std::string_view part = "") {
    EXPECT_FALSE(outcome.success);
    EXPECT_EQ(outcome.code, code) << outcome.message;
    EXPECT_NE(outcome.message.find(part), std::string::npos) << outcome.message;
    EXPECT_TRUE(is_utf8(outcome.message));
    expect_nothing_left();
  }

  void run_until(const std::function<bool()>& done) {
    context_.restart();
    while (!done()) context_.run_one();
  }
  // False if it takes so long that it will never be.
  bool run_for_a_while(const std::function<bool()>& done) {
    context_.restart();
    const BootTime end = clock_.now().boot + 20s;
    while (!done() && clock_.now().boot < end) context_.run_one_for(100ms);
    return done();
  }
  void stop(Millis patience = 0ms) {
    bool stopped = false;
    asio::co_spawn(context_, host_->stop(clock_.now().boot + patience), [&](std::exception_ptr) { stopped = true; });
    run_until([&] { return stopped; });
    expect_nothing_left();
  }

  asio::io_context context_{1};
  RealClock clock_{context_};
  std::optional<ProcessHost> host_;
  testing::ScratchFolder scratch_;
  const fs::path& root_ = scratch_.path();
};

TEST_F(PluginHostTest, APluginReadsItsRequestAndSaysItsResult) {
  const auto echo = python(R"(
request = json.loads(sys.stdin.readline())
assert sys.stdin.read() == ""
print(json.dumps({"progress": {"percent": 50}}))
print(json.dumps({"progress": "nearly"}))
print()
print(json.dumps({"success": True, "data": request})))");
  Job job = job_of(echo, "{\"text\":\n\"你好\"}");
  job.context = R"({"runId":"r1"})";
  const auto running = begin(job);

  const Outcome outcome = wait(running);

  EXPECT_TRUE(outcome.success) << outcome.message;
  const auto data = json::parse(outcome.data);
  ASSERT_TRUE(data);
  EXPECT_EQ(json::text_in(*json::find(*data, "args"), "text"), "你好");
  EXPECT_EQ(json::text_in(*json::find(*data, "context"), "runId"), "r1");
  EXPECT_EQ(running->progress, (std::vector<std::string>{R"({"percent": 50})", R"("nearly")"}));
  expect_nothing_left();
}

TEST_F(PluginHostTest, AResultWithoutDataOrLineEndCounts) {
  const Outcome outcome = run(shell(R"(printf '{"success":true}')"));

  EXPECT_TRUE(outcome.success) << outcome.message;
  EXPECT_EQ(outcome.data, "null");
}

// F5
TEST_F(PluginHostTest, APluginSaysItselfWhyItFailed) {
  expect_failure(run(shell(R"(echo '{"success":false,"error":"no paper"}')")), "plugin_failed", "no paper");
  expect_failure(
      run(shell(R"(echo '{"success":false,"error":{"code":"not_configured","message":"set KEY"}}'; exit 3)")),
      "not_configured", "set KEY");
  expect_failure(run(shell(R"(echo '{"success":false,"error":{"code":"E-1","message":"bad"}}')")), "plugin_failed",
                 "E-1: bad");
  expect_failure(run(shell(R"(echo '{"success":false}')")), "plugin_failed", "did not say why");
}

// F5: `timed_out` may be its own word, or ours.
TEST_F(PluginHostTest, WhatAPluginSaysIsToldFromWhatBelfryDid) {
  const Outcome said = run(shell(R"(echo '{"success":false,"error":{"code":"timed_out","message":"no answer"}}')"));
  expect_failure(said, "timed_out", "no answer");
  EXPECT_TRUE(said.own_word);

  auto hangs = shell("sleep 1000");
  hangs->timeout = kShort;
  const Outcome ended = run(hangs);
  expect_failure(ended, "timed_out");
  EXPECT_FALSE(ended.own_word);
}

// F5
TEST_F(PluginHostTest, APluginThatHangsIsEndedAtItsTimeout) {
  const auto hangs = shell("sleep 300");
  hangs->timeout = kShort;

  expect_failure(run(hangs), "timed_out", "200 ms");
}

// F5
TEST_F(PluginHostTest, APluginThatIgnoresTermIsKilledWithAllItHasForked) {
  const auto stubborn = shell(R"(
trap '' TERM HUP INT
sh -c 'trap "" TERM; exec sleep 300' &
echo '{"progress":"ready"}'
exec sleep 300)");
  stubborn->timeout = 500ms;

  expect_failure(run(stubborn), "timed_out");
}

// F5
TEST_F(PluginHostTest, WhatAPluginForkedIntoAnotherSessionIsEndedToo) {
  const auto daemon = python(R"(
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print(json.dumps({"progress": "detached"}), flush=True)
        time.sleep(300)
    os._exit(0)
time.sleep(300))");
  const auto running = begin(job_of(daemon));
  running->on_progress = [&] { running->cancel->cancel(); };

  expect_failure(wait(running), "cancelled");
  EXPECT_EQ(running->progress.size(), 1u);
}

// F5
TEST_F(PluginHostTest, WhatAPluginLeavesRunningWhenItExitsIsEnded) {
  const Outcome outcome = run(shell(R"(
mkfifo ready
setsid sh -c 'trap "" TERM; echo >ready; exec sleep 300' &
sleep 300 &
read -r ignored <ready
echo '{"success":true,"data":1}')"));

  EXPECT_TRUE(outcome.success) << outcome.message;
  EXPECT_EQ(outcome.data, "1");
  expect_nothing_left();
}

// F5
TEST_F(PluginHostTest, ACancelledJobIsEnded) {
  const auto running = begin(job_of(shell(R"(echo '{"progress":1}'; sleep 300)")));
  running->on_progress = [&] { running->cancel->cancel(); };

  expect_failure(wait(running), "cancelled");
}

TEST_F(PluginHostTest, AJobThatIsCancelledBeforeItBeginsStartsNothing) {
  const auto running = begin(job_of(shell("touch ran; echo '{\"success\":true}'")));
  running->cancel->cancel();

  expect_failure(wait(running), "cancelled");
  EXPECT_FALSE(fs::exists(root_ / "example" / "ran"));
}

TEST_F(PluginHostTest, ACrashIsToldWithTheLastWords) {
  expect_failure(run(shell("echo 'one\ttwo' >&2; printf 'bad \\377 byte \\033[31m' >&2; exit 7")), "crashed",
                 "exit code 7");
  const Outcome outcome = run(shell("echo 'no such model' >&2; exit 7"));
  expect_failure(outcome, "crashed", "no such model");
  expect_failure(run(shell("kill -SEGV $$")), "crashed", "SEGV");
  expect_failure(run(shell("exit 0")), "crashed", "without a result");
  const Outcome long_words = run(shell("i=0; while [ $i -lt 3000 ]; do echo 一二三四 >&2; i=$((i+1)); done; exit 1"));
  expect_failure(long_words, "crashed", "三四");
  EXPECT_LT(long_words.message.size(), 700u);
  EXPECT_EQ(long_words.message.find('\n'), std::string::npos);
}

TEST_F(PluginHostTest, ASuccessCountsOnlyIfThePluginGotToItsEnd) {
  expect_failure(run(shell("echo '{\"success\":true}'; exit 3")), "crashed",
                 "said success, but ended with exit code 3");
}

TEST_F(PluginHostTest, OutputThatIsNoAnswerIsRefused) {
  expect_failure(run(shell("echo hello")), "bad_output", "line 1 of its output: it is no JSON");
  expect_failure(run(shell("echo '[1]'")), "bad_output", "not an object");
  expect_failure(run(shell("echo '{}'")), "bad_output", "neither");
  expect_failure(run(shell("echo '{\"success\":1}'")), "bad_output", "true or false");
  expect_failure(run(shell("echo '{\"success\":true}'; echo '{\"success\":true}'")), "bad_output", "exactly one");
  expect_failure(run(shell("echo '{\"success\":true}'; echo bye")), "bad_output", "line 2");
  expect_failure(run(shell("printf '{\"success\":true,\"data\":\"\\377\"}\\n'")), "bad_output", "no JSON");
}

TEST_F(PluginHostTest, AWrongLineEndsAPluginThatWouldGoOn) {
  expect_failure(run(shell("echo hello; sleep 300")), "bad_output", "line 1");
}

TEST_F(PluginHostTest, AFloodIsStopped) {
  expect_failure(run(shell("while :; do echo '{\"progress\":\"................................\"}'; done")),
                 "too_much_output", "4194304");
  expect_failure(run(python("while True: sys.stderr.write('e' * 65536)")), "too_much_output", "stderr");
  expect_failure(run(python("sys.stdout.write('{' * (2 << 20)); sys.stdout.flush(); time.sleep(300)")),
                 "too_much_output", "1048576");
}

TEST_F(PluginHostTest, MuchOnStderrHoldsNothingUp) {
  const Outcome outcome = run(python(R"(
sys.stderr.write('e' * (1 << 20))
print('{"success":true,"data":"done"}'))"));

  EXPECT_EQ(outcome.data, R"("done")") << outcome.message;
}

TEST_F(PluginHostTest, APluginThatClosesItsOutputWithoutAResultIsEnded) {
  expect_failure(run(shell("exec >&-; sleep 300")), "bad_output", "closed its output");
}

TEST_F(PluginHostTest, AResultCountsThoughThePluginDoesNotExit) {
  for (const char* const script : {"echo '{\"success\":true,\"data\":5}'; exec >&-; sleep 300",
                                   "echo '{\"success\":true,\"data\":5}'; sleep 300"}) {
    const Outcome outcome = run(shell(script));

    EXPECT_TRUE(outcome.success) << outcome.message;
    EXPECT_EQ(outcome.data, "5");
    expect_nothing_left();
  }
}

TEST_F(PluginHostTest, APluginNeedNotReadItsRequest) {
  const std::string large = "{\"text\":\"" + std::string(900'000, 'x') + "\"}";
  const Outcome outcome = run(job_of(shell("exec <&-; echo '{\"success\":true,\"data\":1}'"), large));
  EXPECT_TRUE(outcome.success) << outcome.message;

  const auto hangs = shell("sleep 300");
  hangs->timeout = kShort;
  expect_failure(run(job_of(hangs, large)), "timed_out");
}

TEST_F(PluginHostTest, ALargeRequestArrivesWhole) {
  const std::string large = "{\"text\":\"" + std::string(900'000, 'x') + "\"}";
  const Outcome outcome = run(job_of(python(R"(
print(json.dumps({"success": True, "data": len(json.loads(sys.stdin.readline())["args"]["text"])})))"),
                                     large));

  EXPECT_EQ(outcome.data, "900000") << outcome.message;
}

TEST_F(PluginHostTest, AProgramThatCannotBeRunIsToldAtOnce) {
  const auto missing = shell("");
  missing->command = {(root_ / "nowhere").string()};
  expect_failure(run(missing), "not_started", "No such file");

  const auto no_interpreter = plugin("other", "#!/no/such/interpreter\n");
  expect_failure(run(no_interpreter), "not_started");

  make_host({.guard = "/no/such/guard"});
  expect_failure(run(shell("")), "not_started", "No such file");
}

// F14: nothing of the server reaches a plugin but what is meant for it.
TEST_F(PluginHostTest, TheEnvironmentIsThePluginsOwn) {
  ::setenv("OPENAI_API_KEY", "secret-of-the-server", 1);  // NOLINT(concurrency-mt-unsafe)
  const int leak = ::open("/dev/null", O_RDONLY);         // without the flag that closes it
  make_host({.guard = BELFRY_PROGRAM, .term_grace = kShort, .timezone = "Asia/Shanghai"});
  const auto curious = python(R"(
data = {"env": dict(os.environ), "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1], "cwd": os.getcwd(),
        "umask": os.umask(0), "leader": os.getpid() == os.getsid(0), "argv": sys.argv[1:],
        "pipe": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN}
print(json.dumps({"success": True, "data": data})))");
  curious->environment = {{"TOKEN", "of the plugin"}, {"LANG", "de_DE"}};
  curious->command.insert(curious->command.end(), {"$HOME", "a b; echo"});
  Job job = job_of(curious);
  job.output_dir = (root_ / "example").string();

  const Outcome outcome = run(job);

  ::close(leak);
  ASSERT_TRUE(outcome.success) << outcome.message;
  const auto data = json::parse(outcome.data);
  const auto environment = *json::find(*data, "env");
  std::vector<std::string> names;
  for (const json::Member& member : json::every_member(environment)) names.push_back(member.key);
  std::erase(names, "LC_CTYPE");  // python sets it for itself
  EXPECT_EQ(names, (std::vector<std::string>{"BELFRY_OUTPUT_DIR", "HOME", "LANG", "PATH", "TOKEN", "TZ"}));
  EXPECT_EQ(json::text_in(environment, "TOKEN"), "of the plugin");
  EXPECT_EQ(json::text_in(environment, "LANG"), "de_DE");
  EXPECT_EQ(json::text_in(environment, "TZ"), "Asia/Shanghai");
  EXPECT_EQ(json::text_in(environment, "PATH"), "/usr/local/bin:/usr/bin:/bin");
  EXPECT_EQ(json::find(*data, "fds")->raw, "[0, 1, 2]");
  EXPECT_EQ(json::text_in(*data, "cwd"), (root_ / "example").string());
  EXPECT_EQ(json::find(*data, "umask")->raw, "63");  // 077
  EXPECT_EQ(json::find(*data, "leader")->raw, "true");
  EXPECT_EQ(json::find(*data, "argv")->raw, R"(["$HOME", "a b; echo"])");
}

TEST_F(PluginHostTest, ManyRunBesideEachOther) {
  std::vector<std::shared_ptr<Running>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(begin(job_of(shell("read -r line; echo \"{\\\"success\\\":true,\\\"data\\\":$line}\""),
                               fmt::format("{{\"n\":{}}}", i))));

  for (int i = 0; i < 8; ++i) {
    const Outcome outcome = wait(all[static_cast<std::size_t>(i)]);
    EXPECT_NE(outcome.data.find(fmt::format("\"n\":{}", i)), std::string::npos) << outcome.message;
  }
  expect_nothing_left();
}

TEST_F(PluginHostTest, AStopCancelsWhatRunsAndTakesNothingNew) {
  const auto running = begin(job_of(shell("trap '' TERM; echo '{\"progress\":1}'; exec sleep 300")));
  run_until([&] { return !running->progress.empty(); });

  stop();

  expect_failure(wait(running), "cancelled", "stopping");
  expect_failure(run(shell("echo '{\"success\":true}'")), "cancelled", "stopping");
}

// A plugin that stops its guard, and says who that is.
constexpr const char* kStopsItsGuard = "kill -STOP $PPID; echo \"{\\\"progress\\\":$PPID}\"; sleep 300; :";

class StuckGuardTest : public PluginHostTest {
 protected:
  // Until its guard is stopped.
  std::shared_ptr<Running> begin_stuck(std::shared_ptr<const Plugin> plugin) {
    auto running = begin(job_of(std::move(plugin)));
    run_until([&] { return !running->progress.empty() || running->outcome; });
    EXPECT_FALSE(running->outcome);
    if (!running->progress.empty()) guard_ = std::stoi(running->progress.front());
    return running;
  }
  // A test that fails must not wait for ever at its end.
  void TearDown() override {
    if (HasFailure() && guard_ > 1) ::kill(guard_, SIGKILL);
    PluginHostTest::TearDown();
  }
  // The guard could wait for them no more, so they are gone only when the system has got to it.
  void expect_nothing_left_soon() {
    EXPECT_TRUE(run_for_a_while([&] { return processes_of(root_).empty(); }));
    expect_nothing_left();
  }

  pid_t guard_ = 0;
};

// F5
TEST_F(StuckGuardTest, AGuardThatDoesNotReactHoldsUpNoJob) {
  const auto running = begin_stuck(shell(kStopsItsGuard));

  running->cancel->cancel();

  ASSERT_TRUE(run_for_a_while([&] { return running->outcome.has_value(); }));
  expect_nothing_left_soon();
  expect_failure(*running->outcome, "cancelled");
  EXPECT_EQ(host_->running(), 0);
}

// F5
TEST_F(StuckGuardTest, AGuardThatDoesNotReactHoldsUpNoPersistentPlugin) {
  const auto plugin = shell("read -r line; " + std::string("kill -STOP $PPID\n") +
                            "echo \"{\\\"id\\\":\\\"1\\\",\\\"progress\\\":$PPID}\"; sleep 300; :");
  plugin->persistent = true;
  const auto running = begin_stuck(plugin);

  running->cancel->cancel();

  ASSERT_TRUE(run_for_a_while([&] { return running->outcome.has_value(); }));
  expect_nothing_left_soon();
  expect_failure(*running->outcome, "cancelled");
  EXPECT_EQ(host_->running(), 0);
}

// F5: the grace is so long that nothing but the deadline of the stop ends it.
TEST_F(StuckGuardTest, AStopEndsByItsDeadlineWhateverAGuardDoes) {
  make_host({.guard = BELFRY_PROGRAM, .term_grace = kLong});
  const auto running = begin_stuck(shell(kStopsItsGuard));
  const auto stopped = std::make_shared<bool>(false);
  const BootTime begun = clock_.now().boot;

  asio::co_spawn(context_, host_->stop(begun + kShort), [stopped](std::exception_ptr) { *stopped = true; });

  ASSERT_TRUE(run_for_a_while([&] { return *stopped && running->outcome; }));
  EXPECT_GE(clock_.now().boot, begun + kShort);
  expect_nothing_left_soon();
  expect_failure(*running->outcome, "cancelled", "stopping");
}

// A plugin whose fork is in a session of its own and hears no TERM.
constexpr const char* kLeavesADaemon = R"(
guard = os.getppid()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0: time.sleep(300)
        print(json.dumps({"progress": guard}), flush=True)
        time.sleep(300)
    os._exit(0)
time.sleep(300))";

// F5: as the system does when memory runs out.
TEST_F(StuckGuardTest, WhatAKilledGuardLeavesIsEnded) {
  make_host({.guard = BELFRY_PROGRAM, .term_grace = kShort, .adopt_orphans = true});
  const auto beside = begin(job_of(shell("read -r line; echo '{\"progress\":1}'; sleep 300")));
  run_until([&] { return !beside->progress.empty(); });
  const auto daemon =
      plugin("daemon", std::string("#!/usr/bin/python3\nimport json, os, signal, sys, time\n") + kLeavesADaemon);
  const auto running = begin_stuck(daemon);

  ::kill(guard_, SIGKILL);

  ASSERT_TRUE(run_for_a_while([&] { return running->outcome.has_value(); }));
  EXPECT_EQ(running->outcome->code, "crashed");
  EXPECT_EQ(processes_of(root_ / "daemon"), std::vector<std::string>{});
  EXPECT_EQ(host_->running(), 1);  // the other one goes on
  EXPECT_FALSE(beside->outcome);
  beside->cancel->cancel();
  expect_failure(wait(beside), "cancelled");
}

// F5
TEST_F(StuckGuardTest, WhatAGuardThatDoesNotReactLeavesIsEnded) {
  make_host({.guard = BELFRY_PROGRAM, .term_grace = kShort, .adopt_orphans = true});
  const auto running = begin_stuck(python(kLeavesADaemon));
  ::kill(guard_, SIGSTOP);

  running->cancel->cancel();

  ASSERT_TRUE(run_for_a_while([&] { return running->outcome.has_value(); }));
  expect_failure(*running->outcome, "cancelled");
}

// F5: whoever became the server by exec may have had children of its own.
TEST_F(StuckGuardTest, AChildFromBeforeIsNoOrphan) {
  std::string words[] = {"sleep", "300"};
  char* const arguments[] = {words[0].data(), words[1].data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t before = 0;
  ASSERT_EQ(::posix_spawn(&before, "/usr/bin/sleep", nullptr, nullptr, arguments, environment), 0);
  make_host({.guard = BELFRY_PROGRAM, .term_grace = kShort, .adopt_orphans = true});
  const auto running = begin_stuck(python(kLeavesADaemon));

  ::kill(guard_, SIGKILL);

  EXPECT_TRUE(run_for_a_while([&] { return running->outcome.has_value(); }));
  EXPECT_EQ(processes_of(root_), std::vector<std::string>{});
  EXPECT_EQ(::waitpid(before, nullptr, WNOHANG), 0) << "it was ended, too";
  ::kill(before, SIGKILL);
  ::waitpid(before, nullptr, 0);
}

// F5, G24: the guard notices by the end of a pipe, and the first process behind its walls by the guard's end.
TEST_F(PluginHostTest, AServerThatIsKilledLeavesNothing) {
  const auto hangs = shell(R"(
exec 5>state/fifo
setsid sh -c 'trap "" TERM; exec sleep 300' &
echo started >&5
sleep 300)");
  const fs::path folder = root_ / "example";
  std::ofstream(folder / "config.json") << R"({"name":"example","writes":"state"})";
  fs::create_directory(folder / "state");
  ASSERT_EQ(::mkfifo((folder / "state/fifo").c_str(), 0600), 0);
  for (const char* const sandbox : {"off", "usual"}) {
    std::string words[] = {BELFRY_PROGRAM, "plugin", "try", folder.string(), "--sandbox", sandbox};
    char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                               words[4].data(), words[5].data(), nullptr};
    std::string temporary = "TMPDIR=" + root_.string();
    char* const environment[] = {temporary.data(), nullptr};
    pid_t server = 0;
    ASSERT_EQ(::posix_spawn(&server, BELFRY_PROGRAM, nullptr, nullptr, arguments, environment), 0);
    const int fifo = ::open((folder / "state/fifo").c_str(), O_RDONLY | O_CLOEXEC);  // waits for the plugin to open it
    char piece[16];
    ASSERT_GT(::read(fifo, piece, sizeof piece), 0);
    EXPECT_GE(processes_of(root_).size(), 3u);  // the server, the plugin and what that has forked

    ::kill(server, SIGKILL);

    ::waitpid(server, nullptr, 0);
    // It ends when the last one who holds it has.
    pollfd ended{fifo, POLLIN, 0};
    ASSERT_EQ(::poll(&ended, 1, 60'000), 1) << "something of the plugin still runs";
    EXPECT_EQ(::read(fifo, piece, sizeof piece), 0);
    ::close(fifo);
    expect_nothing_left();
  }
}

// ---- persistent ones

constexpr const char* kCounting = R"(
count = 0
for line in sys.stdin:
    request = json.loads(line)
    count += 1
    what = request["args"].get("do")
    if what == "crash": os._exit(9)
    if what == "hang": time.sleep(300)
    if what == "wrong id": request["id"] = "another"
    if what == "close": os.close(1); time.sleep(300)
    if what == "deaf":
        print(json.dumps({"id": request["id"], "success": True, "data": {"count": count}}), flush=True)
        os.close(0)
        time.sleep(300)
    if what == "progress": print(json.dumps({"id": request["id"], "progress": count}), flush=True)
    print(json.dumps({"id": request["id"], "success": True, "data": {"count": count, "pid": os.getpid()}}), flush=True)
    if what == "chatter": print("not for anybody", flush=True)
)";

class PersistentPluginTest : public PluginHostTest {
 protected:
  std::shared_ptr<Plugin> counting() {
    auto out = python(kCounting);
    out->persistent = true;
    out->idle_timeout = kLong;
    return out;
  }
  static Job asking(std::shared_ptr<const Plugin> plugin, const char* what = "") {
    return job_of(std::move(plugin), fmt::format("{{\"do\":\"{}\"}}", what));
  }
  // Which request it is for the process that serves it; 0 if it failed.
  static std::int64_t count(const Outcome& outcome) {
    if (!outcome.success) return 0;
    return *json::integer(*json::find(*json::parse(outcome.data), "count"));
  }
};

TEST_F(PersistentPluginTest, OneProcessServesManyRequests) {
  const auto plugin = counting();

  EXPECT_EQ(count(run(asking(plugin))), 1);
  EXPECT_EQ(count(run(asking(plugin, "chatter"))), 2);
  const auto running = begin(asking(plugin, "progress"));
  EXPECT_EQ(count(wait(running)), 3);
  EXPECT_EQ(running->progress, std::vector<std::string>{"3"});
  EXPECT_EQ(host_->running(), 1);
}

TEST_F(PersistentPluginTest, RequestsThatComeTogetherFollowEachOther) {
  const auto plugin = counting();
  const auto first = begin(asking(plugin));
  const auto second = begin(asking(plugin));
  const auto given_up = begin(asking(plugin));
  const auto third = begin(asking(plugin));
  given_up->cancel->cancel();

  EXPECT_EQ(count(wait(third)), 3);
  EXPECT_EQ(count(*first->outcome), 1);
  EXPECT_EQ(count(*second->outcome), 2);
  EXPECT_EQ(wait(given_up).code, "cancelled");
}

TEST_F(PersistentPluginTest, AfterACrashTheNextRequestStartsItAnew) {
  const auto plugin = counting();
  EXPECT_EQ(count(run(asking(plugin))), 1);

  expect_failure(run(asking(plugin, "crash")), "crashed", "exit code 9");

  EXPECT_EQ(count(run(asking(plugin))), 1);
}

// F5: nobody waits for the whole timeout of a plugin that has not even read the request.
TEST_F(PersistentPluginTest, OneThatClosedItsInputIsReplacedAndAskedAgain) {
  const auto plugin = counting();
  EXPECT_EQ(count(run(asking(plugin))), 1);
  EXPECT_EQ(count(run(asking(plugin, "deaf"))), 2);
  // Its result may come before its input is closed: then one request is lost in the pipe.
  const auto closed = [&] {
    for (const std::string& one : processes_of(root_)) {
      const fs::path input = fs::path("/proc") / one.substr(0, one.find(' ')) / "fd" / "0";
      std::error_code ec;
      if (fs::read_symlink(input, ec).string().starts_with("pipe:")) return false;
    }
    return true;
  };
  while (!closed()) context_.poll();

  EXPECT_EQ(count(run(asking(plugin))), 1);
}

// F5
TEST_F(PersistentPluginTest, AlwaysDeafIsNoWayToServe) {
  auto deaf = python("os.close(0)\ntime.sleep(300)\n");
  deaf->persistent = true;
  const auto running = begin(job_of(deaf, "{\"x\":\"" + std::string(200'000, 'x') + "\"}"));  // more than a pipe holds

  expect_failure(wait(running), "bad_output", "closed its input");
}

// F5
TEST_F(PersistentPluginTest, ATimeoutEndsTheProcess) {
  const auto plugin = counting();
  EXPECT_EQ(count(run(asking(plugin))), 1);
  Job hanging = asking(plugin, "hang");
  hanging.timeout = kShort;

  expect_failure(run(hanging), "timed_out");

  ASSERT_FALSE(HasFailure());  // one that still hangs would be waited for
  EXPECT_EQ(count(run(asking(plugin))), 1);
}

TEST_F(PersistentPluginTest, AnAnswerToAnotherRequestIsRefused) {
  expect_failure(run(asking(counting(), "wrong id")), "bad_output", "whose id");
}

TEST_F(PersistentPluginTest, OneThatClosesItsOutputIsEnded) {
  expect_failure(run(asking(counting(), "close")), "bad_output", "closed its output");
}

TEST_F(PersistentPluginTest, AnIdleOneEnds) {
  const auto plugin = counting();
  plugin->idle_timeout = 1ms;

  EXPECT_EQ(count(run(asking(plugin))), 1);

  run_until([&] { return host_->running() == 0; });
  expect_nothing_left();
  EXPECT_EQ(count(run(asking(plugin))), 1);
}

TEST_F(PersistentPluginTest, AnotherEditionReplacesIt) {
  const auto plugin = counting();
  EXPECT_EQ(count(run(asking(plugin))), 1);
  const auto newer = std::make_shared<Plugin>(*plugin);
  newer->edition = "newer";

  EXPECT_EQ(count(run(asking(newer))), 1);
  EXPECT_EQ(count(run(asking(newer))), 2);
  EXPECT_EQ(host_->running(), 1);

  host_->renew({newer});
  EXPECT_EQ(count(run(asking(newer))), 3);
  host_->renew({});
  run_until([&] { return host_->running() == 0; });
  expect_nothing_left();
}

TEST_F(PersistentPluginTest, AFloodBetweenRequestsEndsIt) {
  auto plugin = python(R"(
request = json.loads(sys.stdin.readline())
print(json.dumps({"id": request["id"], "success": True}), flush=True)
while True: print("." * 1000))");
  plugin->persistent = true;

  EXPECT_TRUE(run(asking(plugin)).success);

  run_until([&] { return host_->running() == 0; });
  expect_nothing_left();
}

// As plugins are run unless the settings say otherwise.
class WalledPluginTest : public PluginHostTest {
 protected:
  void SetUp() override { make_walled({}); }
  void make_walled(const Amounts& amounts) {
    make_host({.guard = BELFRY_PROGRAM, .term_grace = kShort, .sandbox = Sandbox::usual, .amounts = amounts});
  }
  Job job_with_output(std::shared_ptr<const Plugin> plugin) {
    Job job = job_of(std::move(plugin));
    job.output_dir = (root_ / "out").string();
    fs::create_directories(job.output_dir);
    return job;
  }
};

// G24
TEST_F(WalledPluginTest, ItWritesToItsOutputFolderAndNowhereElse) {
  const Job job = job_with_output(shell(R"(
echo x > "$BELFRY_OUTPUT_DIR/file" && echo x > "$TMPDIR/other" || exit 1
echo x > ./mine && exit 2
echo x > /tmp/belfry-walled && exit 3
cat ../secret && exit 4
echo '{"success":true}')"));
  std::ofstream(root_ / "secret") << "x";
  if (walls_here().landlock_abi == 0 && !walls_here().namespaces)
    GTEST_SKIP() << "no wall around files on this machine";
  const Outcome outcome = run(job);
  EXPECT_TRUE(outcome.success) << outcome.message;
  EXPECT_TRUE(fs::exists(root_ / "out/file"));
  expect_nothing_left();
}

// G24, G18
TEST_F(WalledPluginTest, HowItEndsIsToldAsWithoutWalls) {
  expect_failure(run(shell("exit 3")), "crashed", "exit code 3");
  expect_failure(run(shell("kill -SEGV $$")), "crashed", "signal 11 (SEGV)");
  auto gone = shell("");
  gone->command = {(root_ / "nowhere").string()};
  expect_failure(run(gone), "not_started", "No such file");
  auto hangs = shell("trap '' TERM; while :; do sleep 1; done");
  hangs->timeout = kShort;
  expect_failure(run(hangs), "timed_out");
  const Outcome quick =
      run(shell(R"(trap 'echo "{\"success\":true}"; exit 0' TERM; (sleep 0.1; kill -TERM $$) & wait)"));
  EXPECT_TRUE(quick.success) << quick.message;
}

// G24, G18
TEST_F(WalledPluginTest, WhatItLeavesHidingIsEnded) {
  const Outcome outcome = run(shell(R"(
setsid sh -c 'trap "" TERM; exec sleep 1000' >/dev/null 2>&1 </dev/null &
echo '{"success":true}')"));
  EXPECT_TRUE(outcome.success) << outcome.message;
  expect_nothing_left();
}

// G24
TEST_F(WalledPluginTest, WhoTakesTooMuchIsEnded) {
  make_walled({.processes = 8, .memory_mib = 64, .entries = 20, .levels = 4, .output_mib = 4});
  expect_failure(run(shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 10 & done; wait")), "too_many_processes",
                 "8");
  expect_failure(run(python("x = bytearray(100 << 20)\ntime.sleep(10)")), "too_much_memory", "64 MiB");
  expect_failure(
      run(job_with_output(shell("for i in $(seq 30); do : > $BELFRY_OUTPUT_DIR/$i; done; echo '{\"success\":true}'"))),
      "too_much_output", "20 files");
}

// G24
TEST_F(WalledPluginTest, WithoutAWallThatItAsksForItIsNotStarted) {
  make_host({.guard = BELFRY_PROGRAM, .sandbox = Sandbox::strict, .landlock_abi_max = 0});
  expect_failure(run(shell("echo started >&2")), "not_started", "files (Landlock)");
}

}  // namespace
}  // namespace belfry::plugin
