#include <array>

#include "belfry/agent/concierge/understand_language.h"

namespace belfry::agent {
namespace {

using re2::RE2;

struct Patterns {
  // Around a request.
  RE2 lead{
      "^(?:你好|您好|嗨|哈喽|请|麻烦(?:你|您)?|劳驾|帮(?:我|忙|个忙)|能不能|能否|可不可以|可否|可以|你能|你|您|我想让你|我想要|我想|我要你|记得|记住|"
      "别忘了|别忘记|不要忘了|不要忘记|到时候?|那么|那|嗯|哎|嘿|然后|再|顺便|现在|(?:好的?|好吧|收到|行|知道了|明白了?|谢谢(?:你|您)?|多谢|不错)[，,。！!～~\\s]|(?i:hey|hi|hello|ok|belfry|please)|[，,、。：:；;！!~\\s])"};
  RE2 trail{
      "(?:吧|哦|噢|喔|啊|呀|哈|呢|啦|嘛|哟|谢谢(?:你|您|啦|了)?|多谢|感谢|好吗|好嘛|好不好|可以吗|行吗|行不行|可以不|吗|拜托(?:了)?|"
      "(?i:please|thanks|thx)|[，,、。：:；;！!？?~～\\s…])$"};

  // What is wanted.
  RE2 help{
      "^(?:帮助|帮帮我|使用说明|说明|怎么用|如何使用|怎么使用|功能|命令|指令|你(?:都|还)?(?:能|会|可以)(?:做|干|帮我做|帮我干|帮我|帮)?"
      "(?:些|点)?(?:什么|啥|嘛|哪些|哪些事)?(?:事|事情|功能)?|你有(?:什么|哪些|啥)功能|你是谁|你是(?:什么|啥)|(?:这个|这)?怎么(?:玩|用|取消|设置|提醒|操作).*|(?i:help))$"};
  RE2 can_you{"^你(?:都|还)?(?:能|会|可以)(?:做|干|帮我做|帮我干|帮我|帮)?(?:些|点)?(?:什么|啥|哪些).*$"};
  RE2 drop{"^(?:算了|没事了?|不用了|不要了|当我没说|没什么|随便)$"};
  RE2 greet{
      "^(?:你好|您好|嗨|哈喽|哈啰|在吗|在不在|早|早上好|早安|上午好|中午好|下午好|晚上好|晚安|大家好|hi|hello)(?:[呀啊吗哦，,！!。~\\s].{0,12}|"
      "你好|concierge|belfry)?$"};
  RE2 thank{
      "^(?:谢谢|多谢|感谢|辛苦|太好了|好的|好|不错|厉害|真棒|收到|知道了|明白了?|嗯+|哈+|行)(?:[你您了啦的！!。~，,\\s].{0,12})?$"};
  RE2 not_remind{
      "(?:别|不要|不用|不必|无需|不需要|甭|不想让你|没必要|请?勿)(?:再)?(?:给我)?(?:(?:[提题]醒|叫|喊|通知|催)(?:我|了)?|发(?:给)?我|告诉我)|不[提题]醒我?|不(?:需要|希望|想|要)(?:你|您)?.{0,18}[提题]醒我?|取消提醒我"};
  RE2 clear_refusal{"[提题]醒|叫|喊|通知|催|闹钟"};
  RE2 asks_whether{
      "(?:会|会不会|能不能按时|有没有|是不是)(?:再)?[提题]醒(?:过)?我?(?:了)?(?:吗|么|没|没有)?[？?]*$|(?:取消|删|[提题]醒)(?:掉)?了(?:吗|么|没|没有)[？?]*$"};
  RE2 asks_why{"(?:为什么|怎么|为何|干嘛|凭什么)(?:又)?(?:没|不|还没)"};
  RE2 not_forget{"(?:别|不要|不能|可别|千万别)忘(?:了|记)?|要不[提题]醒|不[提题]醒我?就"};
  RE2 list{
      "^(?:我的|所有|全部)?(?:提醒|任务|定时消息|定时|待办|日程|安排|闹钟)?(?:的)?(?:列表|清单|一览)$|^(?:我的|所有的?|全部的?)(?:提醒|任务|定时消息|待办|日程|安排|闹钟)$|"
      "(?:有|看|查|列|显示|展示|哪些|什么|几个|多少|几条).*(?:提醒|定时|安排|任务|计划|日程|待办|闹钟|清单|列表)|"
      "(?:提醒|定时消息|安排|任务|待办|闹钟|日程).*(?:有哪些|有什么|有啥|有几|多少|列表|清单|看看|看一下|给我看|列出来|列一下)|接下来(?:都)?(?:有|还有)?(?:什么|啥)|(?:还)?有(?:什么|哪些|啥)(?:没|未|还没)(?:发|提醒|执行)"};
  RE2 asks{"哪些|什么|几个|几条|多少|啥"};
  RE2 not_cancel{"被(?:取消|删)|(?:别|不要|不用|先不)(?:取消|删)"};
  // Which one is open: said and taken back, or so many of them.
  RE2 corrects{"不是|不对|说错|哦不|应该是"};
  RE2 counts{"^(?:\\d+|[一二两三四五六七八九十]+)[个条](?:提醒|任务|消息)?$|前(?:\\d+|[两三四五六])[个条]"};
  RE2 cancel_it{
      "^(?:把|将)(.+?)(?:都|全部|全|给我|给)?(?:取消|删除|删掉|删|去掉|撤销|撤掉|撤回|清空|清掉|作废|不要)(?:掉|了|一下)?$"};
  RE2 cancel{"(?:取消|删除|删掉|删了|删|去掉|撤销|撤掉|撤回|清空|清掉|不要了|作废|不用了)(?:掉|一下)?"};
  RE2 cancel_end{"(?:取消|删除|删掉|删了|去掉|撤销|撤掉|清空|不要了|作废|不用了|不需要了|用不着了)(?:掉|了|一下)?$"};
  RE2 move_to{
      "^(?:把|将)?(.*?)(?:的时间)?(?:改到|改成|改为|改在|改|挪到|挪|移到|移动到|移至|推迟到|推到|延后到|延迟到|延期到|延到|提前到|换到|换成|调到|调整到|调成|调整为|顺延到)(?:了)?(.+)$"};
  RE2 move_by{
      "^(?:把|将)?(.*?)(推迟|延后|延迟|往后推|推后|顺延|往后延|提前|往前提|提早)(?:个)?(.+?)(?:再)?(?:提醒(?:我)?|发(?:我)?|叫我)?$"};
  RE2 move_alone{
      "^(?:把|将)?(.*?)(?:推迟|延后|延迟|往后推|改个时间|改时间|换个时间|改期|改一下时间|提前)(?:一下|一点|点)?$"};
  RE2 move_time{"^(?:改|修改|调整|更改|换|变更)(?:一下|下)?(.*?)(?:的)?时间$"};
  RE2 earlier{"^(?:提前|往前提|提早)$"};

  // Reminders. Weak ones are only meant if there is a time.
  RE2 make{
      "(?:帮我|给我)?(?:定|设置|设定|设|订|创建|新建|建|添加|加|来|弄|搞|安排|做)(?:上)?(?:一)?(?:个|条|下)?(.*?)(?:的)?(提醒|闹钟|闹铃|定时器|倒计时)(?:一下|我)?"};
  RE2 remind{
      "(?:(?:请|麻烦你?|帮我|帮忙|能不能|可以|你|记得|记住|别忘了|别忘记|不要忘了|不要忘记|千万别忘了|要|得|再|到时候?)[，,\\s]*)*(?:[提题]醒(?:一下|下)?我(?:一下|一声)?|(叫醒)我|[提题]醒一下|(?:别|不要)让我忘(?:了|记))"};
  RE2 reminded{"[提题]醒(?:过|了)?我了|[提题]醒(?:过|了)我"};
  RE2 wake{"叫我(起床)"};
  RE2 remind_head{"^提醒(?:[：:，,])?"};
  RE2 remind_end{"提醒$"};
  RE2 weak{
      "(?:(?:请|麻烦你?|帮我|记得|别忘了|到时候?|再)[，,\\s]*)*(?:叫(?:一下|一声)?我(?:一下|一声)?|喊(?:一下|一声)?我(?:一下|一声)?|通知(?:一下)?我(?:一下|一声)?|告诉我(?:一下|一声)?|跟我说(?:一下|一声)?|催(?:一下)?我(?:一下)?|发(?:个|条)?消息给我|给我发(?:个|条)?消息|给我发|cue我|踢我一下)"};

  // Telling somebody.
  RE2 tell{
      "^(?:去|再|并)?(?:告诉|告知|通知|转告|提醒|叫|喊|催|@)\\s*([A-Za-z0-9_.-]+)\\s*(?:一下|一声)?\\s*(?:说|，说|,说)?[:：，,\\s]*(.+)$"};
  RE2 say_to{
      "^(?:去|再)?(?:跟|和|对|给|向|帮我跟|帮我给)\\s*([A-Za-z0-9_.-]+)\\s*(?:说一下|说一声|说|讲|发(?:一)?(?:个|条)?(?:消息|信息|短信|微信)?|带(?:个|句)话|留(?:个)?言)\\s*(?:说)?[:：，,\\s]*(.+)$"};
  RE2 send_to{"^发(?:一)?(?:个|条)?(?:消息|信息|短信)?给\\s*([A-Za-z0-9_.-]+)\\s*(?:说|，说)?[:：，,\\s]*(.+)$"};
  RE2 nobody{
      "^(?:告诉|转告|告知)[^我你您自].+$|^(?:跟|给|对|和|通知)[^我你您自].{0,8}?(?:说|发(?:个|条)?消息)[:：，,]?.+$"};
  RE2 nobody_name{"^(?:告诉|转告|告知|跟|给|对|和|通知)(.{1,12}?)(?:说|发(?:个|条)?消息|[:：，,]|一声|一下)"};
  RE2 name_me{"^(?i:me|user|myself)$"};

  // Which one.
  RE2 numbers{
      "^((?:第?\\d{1,3}|第[一二三四五六七八九十]+)(?:个|条|项|号)?(?:(?:、|，|,|和|跟|及|与|\\s)+(?:第)?(?:\\d{1,3}|[一二三四五六七八九十]+)(?:个|条|项|号)?)*)(?:的)?(?:提醒|任务|消息)?$"};
  RE2 ordinal{"第(\\d{1,3}|[一二三四五六七八九十]+)(?:个|条|项|号)?"};
  RE2 last{
      "(?:最后|最新|上|刚才|刚刚|最近|刚)(?:的)?(?:那)?(?:一)?(?:个|条|次)?(?:的)?(?:提醒|设的|加的|定的|建的)?(?:那个|那条)?"};
  RE2 last_word{"最后|最新|上一?[个条]|刚才|刚刚|最近|刚设|刚定|刚加"};
  RE2 except{"除了?(.+?)(?:以外|之外|外)?[，,\\s]*(?:其他|其它|其余|剩下|别)?(?:的)?(?:都|全|统统|$)"};
  RE2 several{"^(.+?)(?:、|，|,|和|跟|以及|还有)(.+)$"};
  RE2 all{"全部|所有|统统|^(?:.{0,6}(?:提醒|任务|消息|闹钟))?(?:都|全)$|^(?:都|全)"};
  RE2 filler{
      "那个|那条|那件|这个|这条|的事情|的事|提醒|任务|定时|消息|闹钟|一下|把|将|给我|帮我|我的|我|了|吧|的|关于|有关|掉|请|一个|个|条|都|全|，|,|。|：|:|“|”|\"|时间|再"};
  RE2 and_others{"^(?:和|跟|、|及|以及|与|还有|,|，)\\s*[A-Za-z0-9_.-]+"};

  // Another time.
  RE2 time_of_day{
      "^(?:早上|上午|中午|下午|晚上|傍晚|凌晨|夜里|早|晚)?(?:\\d{1,2}|[一二三四五六七八九十两]+)(?:点|[:：]\\d\\d)(?:半|钟|整|一刻|三刻|(?:\\d{1,2}|[一二三四五六七八九十]+)分?)?$"};

  // What is left of what it is about.
  RE2 about_lead{"^(?:我要|我得|要|得|说|在|于|的|去提醒|[，,、。：:；;！!？?~\\s“”\"「」'])"};
  RE2 about_trail{"(?:记得|到时候|请|帮我|麻烦|的时候|，请|[，,、。：:；;！!？?~～\\s“”\"「」'])$"};
};

const Patterns& patterns() {
  static const Patterns all;
  return all;
}

int number_of(const std::string& text) {
  if (text[0] >= '0' && text[0] <= '9') return std::stoi(text);
  static const std::array<std::string_view, 10> digits{"一", "二", "三", "四", "五", "六", "七", "八", "九", "十"};
  int number = 0;
  for (std::size_t at = 0; at + 3 <= text.size(); at += 3) {
    const std::string_view one = std::string_view(text).substr(at, 3);
    const auto* const found = std::find(digits.begin(), digits.end(), one == "两" ? std::string_view("二") : one);
    if (found == digits.end()) return 0;
    const int value = static_cast<int>(found - digits.begin()) + 1;
    if (value == 10) {
      number = number == 0 ? 10 : number * 10;
    } else {
      number += value;
    }
    if (number > 999) return 0;
  }
  return number;
}

std::string about(Words words) {
  const Patterns& p = patterns();
  words.take_all(p.about_lead);
  words.take_all(p.about_trail);
  words.take_all(p.trail);
  return words.said();
}

// --- which one ---

void take_numbers(Words& words, Target& target) {
  const Patterns& p = patterns();
  if (const auto found = words.find(p.numbers)) {
    static const RE2 one("(\\d{1,3}|[一二三四五六七八九十两]+)");
    Words list = words;
    list.keep(found->groups[0]);
    while (const auto number = list.find(one)) {
      target.numbers.push_back(
          number_of(list.plain().substr(number->whole.begin, number->whole.end - number->whole.begin)));
      list.take(number->whole);
    }
    words.take(found->whole);
    return;
  }
  while (const auto found = words.find(p.ordinal)) {
    const Span digits = found->groups[0];
    target.numbers.push_back(number_of(words.plain().substr(digits.begin, digits.end - digits.begin)));
    words.take(found->whole);
  }
}

void take_place(Words& words, Target& target) {
  const Patterns& p = patterns();
  take_numbers(words, target);
  if (!target.numbers.empty() || !words.has(p.last_word)) return;
  target.last = true;
  words.take(words.find(p.last)->whole);
}

void take_words(Words& words, Target& target) {
  words.take_all(patterns().filler);
  std::string word;
  for (const char c : words.said() + " ") {
    if (c != ' ') {
      word.push_back(c);
    } else if (!word.empty()) {
      target.words.push_back(std::move(word));
      word.clear();
    }
  }
}

const TargetReader& target_reader() {
  const Patterns& p = patterns();
  static const TargetReader reader{p.except, p.all, p.several, take_place, take_words};
  return reader;
}

Target target_of(Words words, const ReadTime& read) { return read_target(std::move(words), target_reader(), read); }

// --- another time ---

bool read_move(const Words& words, const ReadTime& read, Utterance& utterance) {
  const Patterns& p = patterns();
  const auto text = [&](Span span) { return words.plain().substr(span.begin, span.end - span.begin); };
  const auto to = words.find(p.move_to);
  const auto new_time = to ? read(text(to->groups[1])) : fail(Errc::not_a_time, "");
  const auto by = words.find(p.move_by);
  const auto distance = by ? read(text(by->groups[2]) + "后") : fail(Errc::not_a_time, "");
  Words left = words;
  if (new_time) {
    utterance.at = *new_time;
    utterance.on_its_day = RE2::FullMatch(text(to->groups[1]), p.time_of_day);
    left.keep(to->groups[0]);
  } else if (distance) {
    utterance.at = *distance;
    utterance.at->kind = when::ReadingKind::duration;
    utterance.earlier = RE2::FullMatch(text(by->groups[1]), p.earlier);
    left.keep(by->groups[0]);
  } else if (const auto alone = words.find(p.move_alone)) {
    left.keep(alone->groups[0]);
  } else if (const auto time = words.find(p.move_time)) {
    left.keep(time->groups[0]);
  } else {
    return false;
  }
  utterance.wish = Wish::move;
  utterance.target = target_of(std::move(left), read);
  return true;
}

// --- telling ---

struct Telling {
  std::string to;
  std::string text;
  bool and_others = false;
};

std::optional<Telling> telling(const Words& words) {
  const Patterns& p = patterns();
  for (const RE2* const pattern : {&p.tell, &p.say_to, &p.send_to}) {
    const auto found = words.find(*pattern);
    if (!found || splits_a_word(words, found->groups[0])) continue;
    std::string to = words.said(found->groups[0]);
    for (char& c : to) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    Words rest = words;
    rest.keep(found->groups[1]);
    if (RE2::FullMatch(to, p.name_me)) continue;
    const bool and_others = rest.has(p.and_others);
    return Telling{to, about(std::move(rest)), and_others};
  }
  return std::nullopt;
}

bool read_tell(const Words& words, const ReadTime& read, Utterance& utterance) {
  const Patterns& p = patterns();
  Words rest = words;
  Utterance noted;
  const auto time = take_time(rest, read, noted);
  rest.take_all(p.lead);
  auto told = telling(rest);
  // 告诉bob会议是下午3点: when the meeting is, not when to tell.
  if (told && time) {
    static const RE2 state_before(
        "(?:是|在|改到|改成|推迟到|定在|为|到|说|：|:|(?:我|我们|咱们|他|她|他们|你)(?:会|要|得|可能|大概)?)\\s*$");
    Words before = words;
    before.keep({0, time->where.begin});
    const bool told_of = time->where.begin > 0 && words.plain().substr(time->where.end).starts_with("的");  // 明天的会
    if (before.has(state_before) || told_of) {
      Words whole = words;
      whole.take_all(p.lead);
      told = telling(whole);
    } else {
      utterance.at = time->reading;
    }
  }
  static const RE2 name_alone("^[^A-Za-z0-9]+\\s*[A-Za-z0-9_.-]+$");
  if (!told && rest.has(p.nobody) && !rest.has(name_alone)) {
    const auto name = rest.find(p.nobody_name);
    told = Telling{"", name ? rest.said(name->groups[0]) : ""};
  }
  if (!told) return false;
  utterance.wish = Wish::tell;
  utterance.impossible_time = noted.impossible_time;
  utterance.to = told->to;
  utterance.what = told->text;
  utterance.several_people = told->and_others;
  return true;
}

// --- reminding ---

// The frame, without which what is left is what it is about.
bool take_frame(Words& words, bool has_time, bool& rings) {
  const Patterns& p = patterns();
  if (const auto found = words.find(p.remind)) {
    words.take(found->whole);
    return true;
  }
  if (const auto found = words.find(p.wake)) {
    words.take({found->whole.begin, found->groups[0].begin});
    return true;
  }
  if (const auto found = words.find(p.make)) {
    const std::string inside = words.said(found->groups[0]);
    rings = words.said(found->groups[1]) != "提醒";
    const std::string before = words.said({0, found->whole.begin});
    const std::string behind = words.said({found->whole.end, words.said().size()});
    words = Words(before + inside + behind, true);
    return true;
  }
  if (const auto found = words.find(p.remind_head)) {
    words.take(found->whole);
    return true;
  }
  if (!has_time) return false;
  for (const RE2* const pattern : {&p.weak, &p.remind_end}) {
    if (const auto found = words.find(*pattern)) {
      words.take(found->whole);
      return true;
    }
  }
  return false;
}

bool read_remind(const Words& words, const ReadTime& read, Utterance& utterance) {
  const Patterns& p = patterns();
  if (words.has(p.reminded)) return false;
  Words rest = words;
  Utterance noted;
  // 17:30提醒我下班: what stands before the frame says when; only if nothing does, what stands behind it.
  std::optional<TimeInText> time;
  if (const auto frame = words.find(p.remind)) time = take_time_in({0, frame->whole.begin}, rest, read, noted);
  if (!time && !noted.impossible_time) time = take_time(rest, read, noted);
  rest.take_all(p.lead);
  bool rings = false;
  const bool wakes = rest.plain().find("叫醒我") != std::string::npos;
  // 十分钟后：喝茶
  const std::string_view behind =
      time && time->where.begin == 0 ? std::string_view(words.plain()).substr(time->where.end) : std::string_view{};
  const bool colon = behind.starts_with("：") || behind.starts_with(":");
  // 医生提醒我少吃糖: somebody else did.
  const auto frame = rest.find(p.remind);
  const bool somebody_else = !time && frame && frame->whole.begin > 0 &&
                             !RE2::PartialMatch(rest.plain().substr(0, frame->whole.begin), "[，,。！!；;：:\\s]$");
  if (somebody_else) return false;
  if (!take_frame(rest, time.has_value(), rings) && !colon) return false;
  rest.take_all(p.lead);
  utterance.wish = Wish::remind;
  utterance.what = about(std::move(rest));
  if (utterance.what.empty() && wakes) utterance.what = "起床";
  if (utterance.what.empty() && rings) utterance.what = "时间到了";
  if (time) utterance.at = time->reading;
  utterance.impossible_time = noted.impossible_time;
  return true;
}

bool leaves_open(const Words& which, Utterance& utterance) {
  const Patterns& p = patterns();
  utterance.unsure = which.has(p.corrects) || which.has(p.counts);
  return utterance.unsure;
}

bool read_cancel(const Words& words, const ReadTime& read, Utterance& utterance) {
  const Patterns& p = patterns();
  if (words.has(p.not_cancel)) return false;
  Words rest = words;
  if (const auto it = words.find(p.cancel_it)) {
    static const RE2 all_of("(?:都|全部|全)(?:给我)?(?:取消|删|去掉|撤|清)");
    rest.keep(it->groups[0]);
    utterance.wish = Wish::cancel;
    if (leaves_open(rest, utterance)) return true;
    utterance.target = target_of(std::move(rest), read);
    if (words.has(all_of) && utterance.target.says_nothing()) utterance.target.all = true;
    return true;
  }
  const auto found = words.find(p.cancel);
  if (!found) return false;
  const auto reminds = words.find(p.remind);
  const bool asks_later = reminds && reminds->whole.begin < found->whole.begin;  // 提醒我取消订阅
  if (asks_later && !words.has(p.cancel_end)) return false;
  if (asks_later && !words.plain().starts_with("把")) return false;
  rest.take(found->whole);
  utterance.wish = Wish::cancel;
  if (!leaves_open(rest, utterance)) utterance.target = target_of(std::move(rest), read);
  return true;
}

}  // namespace

Utterance understand_chinese(Words words, const ReadTime& read) {
  const Patterns& p = patterns();
  Utterance utterance{.language = when::Language::chinese};
  const auto is = [&](Wish wish) {
    utterance.wish = wish;
    return utterance;
  };
  const Words whole = words;
  words.take_all(p.trail);
  if (words.has(p.help) || whole.has(p.help) || whole.has(p.can_you)) return is(Wish::help);
  if (words.has(p.drop) || whole.has(p.drop)) return is(Wish::drop);
  if (whole.has(p.asks_whether)) return is(Wish::list);
  if (words.has(p.asks_why)) return utterance;
  const bool refuses = !words.has(p.not_forget);
  const Refusal refusal{p.not_remind, p.remind, p.clear_refusal};
  if (refuses && read_refusal(words, refusal, target_reader(), read, utterance)) return utterance;
  words.take_all(p.lead);
  if (read_tell(words, read, utterance)) return utterance;
  if (read_cancel(words, read, utterance)) return utterance;
  const bool reminds = words.has(p.remind);
  if (!reminds && read_move(words, read, utterance)) return utterance;
  const bool makes = words.has(p.make) && !words.has(p.asks);
  if (!reminds && !makes && words.has(p.list)) return is(Wish::list);
  if (read_remind(words, read, utterance)) return utterance;
  // Only what asks for nothing else is small talk: 好的，取消第2个 is not.
  if (whole.has(p.greet)) return is(Wish::greet);
  if (words.empty() || whole.has(p.thank)) return is(Wish::thank);
  return utterance;
}

}  // namespace belfry::agent
