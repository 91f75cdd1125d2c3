#include "belfry/agent/concierge/phrases.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "belfry/when/sentence.h"

namespace belfry::agent {
namespace {

constexpr std::string_view kReminderEnglish = "Reminder: ";
constexpr std::string_view kReminderChinese = "提醒：";
// What fits on a button, and into a line of a list.
constexpr std::size_t kLabelBytes = 60;
constexpr std::size_t kListedBytes = 300;
// So many are named when several are cancelled.
constexpr std::size_t kNamedMax = 10;

// Cut between characters, if it has to be.
std::string shortened(const std::string& text, std::size_t bytes = kLabelBytes) {
  if (text.size() <= bytes) return text;
  std::size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

}  // namespace

std::string Phrases::reminder(const std::string& what) const {
  return std::string(chinese_ ? kReminderChinese : kReminderEnglish) + what;
}

std::string Phrases::subject(const std::string& text) {
  for (const std::string_view prefix : {kReminderEnglish, kReminderChinese})
    if (text.starts_with(prefix)) return text.substr(prefix.size());
  return text;
}

std::string Phrases::passed_on(const std::string& from, const std::string& text) const {
  return chinese_ ? fmt::format("{} 让我转告你：{}", from, text)
                  : fmt::format("{} asked me to tell you: {}", from, text);
}

std::string Phrases::telling(const std::string& to, const std::string& text) const {
  return chinese_ ? fmt::format("告诉 {}：{}", to, text) : fmt::format("tell {}: {}", to, text);
}

// Tuesday 17 November 2026 at 09:00 (UTC+08:00), in 23 hours
std::string Phrases::moment(WallTime at) const {
  const when::Language language = chinese_ ? when::Language::chinese : when::Language::english;
  const when::Reading reading{.at = at, .zone = zone_};
  return fmt::format("{}{}{}", when::sentence(reading, language), pick(", ", "，"), when::distance(at, now_, language));
}

std::string Phrases::time_label(WallTime at) const {
  static constexpr std::array<std::string_view, 7> days_en{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
  static constexpr std::array<std::string_view, 7> days_zh{"一", "二", "三", "四", "五", "六", "日"};
  static constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const when::Local local = zone_.local(std::chrono::floor<std::chrono::seconds>(at));
  const auto day = static_cast<std::size_t>(when::weekday_of(local.date) - 1);
  const auto seconds = local.time.count();
  const auto hour = seconds / 3600;
  std::string clock = fmt::format("{:02}:{:02}", hour, seconds / 60 % 60);
  if (seconds % 60 != 0) clock += fmt::format(":{:02}", seconds % 60);
  if (!chinese_) {
    return fmt::format("{} {} {} {}", days_en[day], when::day_of(local.date),
                       months[static_cast<std::size_t>(when::month_of(local.date) - 1)], clock);
  }
  const std::string_view part = hour < 6    ? "凌晨"
                                : hour < 12 ? "上午"
                                : hour < 13 ? "中午"
                                : hour < 18 ? "下午"
                                            : "晚上";
  return fmt::format("{}月{}日周{} {}{}", when::month_of(local.date), when::day_of(local.date), days_zh[day], part,
                     clock);
}

std::string Phrases::task_label(const Listed& task) const {
  return shortened(fmt::format("{} {}", time_label(task.at), subject(task.text)));
}

std::string Phrases::will_remind(const std::string& what, WallTime at) const {
  return chinese_ ? fmt::format("好的，{}提醒你：{}", moment(at), what)
                  : fmt::format("OK. I will remind you on {}: {}", moment(at), what);
}

std::string Phrases::will_tell(const std::string& name, const std::string& text, WallTime at) const {
  return chinese_ ? fmt::format("好的，{}告诉 {}：{}", moment(at), name, text)
                  : fmt::format("OK. I will tell {} on {}: {}", name, moment(at), text);
}

std::string Phrases::told(const std::string& name, const std::string& text) const {
  return chinese_ ? fmt::format("已经告诉 {}：{}", name, text) : fmt::format("Done. I have told {}: {}", name, text);
}

std::string Phrases::one_at_a_time() const {
  return pick("I can tell one at a time. Say it once for each of them, like: tell bob lunch is ready",
              "一次只能转告一个人。请分别说，例如：告诉 bob 午饭好了");
}

std::string Phrases::nobody(const std::string& name) const {
  if (name.empty())
    return pick("I do not know whom you mean. People and agents go by ids here, like bob or ops-bot.",
                "我不知道你说的是谁。这里的人和智能体用 id 称呼，例如 bob 或 ops-bot。");
  return chinese_
             ? fmt::format("这里没有叫“{}”的人或智能体。用 id 称呼，例如 bob。", name)
             : fmt::format("There is nobody called \"{}\" here. People and agents go by their ids, like bob.", name);
}

std::string Phrases::list(const std::vector<Listed>& tasks, bool more) const {
  if (tasks.empty()) return nothing_scheduled();
  std::string text = pick("This is coming:", "接下来有：");
  for (std::size_t i = 0; i < tasks.size(); ++i)
    text += fmt::format("\n{}. {} {}", i + 1, time_label(tasks[i].at), shortened(subject(tasks[i].text), kListedBytes));
  if (more) text += pick("\n… and more after these.", "\n……后面还有。");
  return text;
}

std::string Phrases::cancelled(const std::vector<std::string>& texts) const {
  std::string names;
  for (std::size_t i = 0; i < std::min(texts.size(), kNamedMax); ++i)
    names += (i == 0 ? "" : pick("; ", "；")) + shortened(subject(texts[i]));
  if (texts.size() > kNamedMax) {
    const std::size_t others = texts.size() - kNamedMax;
    names += chinese_ ? fmt::format("……等另外 {} 条", others) : fmt::format("; and {} more", others);
  }
  return chinese_ ? fmt::format("已取消：{}", names) : fmt::format("Cancelled: {}", names);
}

std::string Phrases::moved(const std::string& text, WallTime at) const {
  return chinese_ ? fmt::format("好的，“{}”改到{}。", shortened(subject(text)), moment(at))
                  : fmt::format("OK. \"{}\" is now on {}.", shortened(subject(text)), moment(at));
}

std::string Phrases::past(WallTime at) const {
  return chinese_ ? fmt::format("{}已经过去了，请说一个将来的时间。", time_label(at))
                  : fmt::format("{} is past. Tell me a time that is still to come.", time_label(at));
}

std::string Phrases::bad_time(const std::string& reason) const {
  return chinese_ ? fmt::format("这个时间我没法用（{}）。换一个吧，例如“明天早上9点”。", reason)
                  : fmt::format("I cannot use that time ({}). Try another one, like \"tomorrow at 9am\".", reason);
}

std::string Phrases::too_late() const {
  return pick("That one has just been sent, or is gone.", "那条刚刚已经发出，或者已经没有了。");
}

std::string Phrases::failed(const std::string& reason) const {
  return chinese_ ? fmt::format("没有成功：{}", reason) : fmt::format("That did not work: {}", reason);
}

std::string Phrases::nothing_scheduled() const {
  return pick("Nothing is scheduled. Try: remind me in 10 minutes to stretch",
              "现在没有定时的消息。可以说：10分钟后提醒我活动一下");
}

std::string Phrases::dropped() const { return pick("OK, nothing is changed.", "好的，什么都没有改。"); }

std::string Phrases::help() const {
  return pick(
      "I write down now what I will say later, and say it on time:\n"
      "- remind me tomorrow at 9am to call mom\n"
      "- tell bob at 5pm that the build is green\n"
      "- list\n"
      "- cancel 2, cancel the last one, cancel the one tomorrow\n"
      "- move 2 to friday 3pm, postpone the first by 10 minutes\n"
      "I am not a language model: agents of your own connect over HTTP (see docs/api.md).",
      "我把要说的话现在记下，到点就说：\n"
      "- 明天早上9点提醒我给妈妈打电话\n"
      "- 下午5点告诉 bob 构建通过了\n"
      "- 列表\n"
      "- 取消第2个、取消最后一个、把明天那个取消\n"
      "- 把第2个改到周五下午3点、把第一个推迟10分钟\n"
      "我不是语言模型：你自己的智能体可以通过 HTTP 接入（见 docs/api.md）。");
}

std::string Phrases::greeting() const {
  return pick(
      "Hello! Tell me what to remind you of and when: remind me in 20 minutes to stretch. \"help\" says the rest.",
      "你好！告诉我什么时候提醒你什么，例如：20分钟后提醒我活动一下。“帮助”里有其余的用法。");
}

std::string Phrases::welcome() const { return pick("You are welcome.", "不客气。"); }

std::string Phrases::not_understood() const {
  return pick(
      "I did not understand that. No language model is connected; I remind you, tell others, list, cancel and move. "
      "For example: remind me tomorrow at 9am to call mom. \"help\" says the rest, and how to connect an agent of your own.",
      "这句我没听懂。现在没有接入语言模型；我会提醒、转告、列出、取消和改时间。例如：明天早上9点提醒我给妈妈打电话。"
      "“帮助”里有其余的用法，以及怎样接入你自己的智能体。");
}

std::string Phrases::private_only() const {
  return pick("I keep reminders in private chats only: write to me there.", "我只在私聊里记提醒，请私聊我。");
}

std::string Phrases::ask_when(const std::string& what) const {
  return chinese_ ? fmt::format("什么时候提醒你“{}”？", shortened(what))
                  : fmt::format("When shall I remind you: {}?", shortened(what));
}

std::string Phrases::ask_what() const { return pick("What shall I remind you of?", "提醒你什么？"); }

std::string Phrases::ask_which_time(const std::string& what) const {
  return chinese_ ? fmt::format("哪个时间？{}", shortened(what)) : fmt::format("Which time? {}", shortened(what));
}

std::string Phrases::ask_once(const std::string& what, WallTime at) const {
  return chinese_
             ? fmt::format("我还不会重复提醒。只提醒一次吗？{}：{}", time_label(at), shortened(what))
             : fmt::format("I cannot repeat a reminder yet. Just once, on {}: {}?", time_label(at), shortened(what));
}

std::string Phrases::ask_which(bool cancel, bool none_fits) const {
  const std::string none = none_fits ? pick("I find none that fits. ", "没有找到对得上的。") : "";
  return none +
         (cancel ? pick("Which one shall I cancel?", "取消哪一个？") : pick("Which one shall I move?", "改哪一个？"));
}

std::string Phrases::ask_new_time(const std::string& text) const {
  return chinese_ ? fmt::format("“{}”改到什么时候？", shortened(subject(text)))
                  : fmt::format("When shall \"{}\" be?", shortened(subject(text)));
}

std::vector<std::string> Phrases::usual_times() const {
  if (chinese_) return {"10分钟后", "1小时后", "明天早上9点"};
  return {"in 10 minutes", "in 1 hour", "tomorrow at 9am"};
}

std::string Phrases::yes_once() const { return pick("Yes, once", "好，就一次"); }
std::string Phrases::no() const { return pick("No", "不用了"); }
std::string Phrases::never_mind() const { return pick("Never mind", "算了"); }

}  // namespace belfry::agent
