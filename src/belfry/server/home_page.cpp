#include "belfry/server/home_page.h"

#include <charconv>

#include <fmt/format.h>

#include "belfry/server/http_message.h"

namespace belfry::server {
namespace {

struct Words {
  std::string_view language;
  std::string_view lead;
  std::string_view running;
  std::string_view stopping;
  std::string_view messages;
  std::string_view delayed;
  std::string_view pending;
  std::string_view in_flight;
  std::string_view acked;
  std::string_view cancelled;
  std::string_view expired;
  std::string_view dead;
  std::string_view recipients;
  std::string_view recipient;
  std::string_view nobody;
  std::string_view first_of;
  std::string_view how_to_send;
  std::string_view add;
  std::string_view send;
  std::string_view send_later;
  std::string_view receive;
  std::string_view ack;
  std::string_view lease;
  std::string_view hello;
  std::string_view tea;
  std::string_view more;
  std::string_view other_language;
  std::string_view other_code;
};

constexpr Words kEnglish{
    .language = "en",
    .lead = "Messages that arrive when they should: now, in 90 seconds, or in ten years.",
    .running = "running",
    .stopping = "stopping",
    .messages = "Messages",
    .delayed = "Delayed",
    .pending = "Pending",
    .in_flight = "In flight",
    .acked = "Acked",
    .cancelled = "Cancelled",
    .expired = "Expired",
    .dead = "Dead letters",
    .recipients = "Recipients",
    .recipient = "Recipient",
    .nobody = "Nobody is registered yet. The first command below adds a recipient.",
    .first_of = "The first {} of {}.",
    .how_to_send = "How to send",
    .add = "Add a recipient",
    .send = "Send it a message",
    .send_later = "Send one that arrives in five seconds",
    .receive = "Wait for messages",
    .ack = "Say that one was handled, with its lease; else it comes again",
    .lease = "THE LEASE",
    .hello = "hello",
    .tea = "tea",
    .more = "Figures for Prometheus: <a href=\"/metrics\">/metrics</a> · Health: <a href=\"/healthz\">/healthz</a>",
    .other_language = "中文",
    .other_code = "zh",
};

constexpr Words kChinese{
    .language = "zh-CN",
    .lead = "消息该什么时候到，就什么时候到：现在、90 秒后，或者十年后。",
    .running = "运行中",
    .stopping = "正在停止",
    .messages = "消息",
    .delayed = "延迟",
    .pending = "待接收",
    .in_flight = "处理中",
    .acked = "已确认",
    .cancelled = "已取消",
    .expired = "已过期",
    .dead = "死信",
    .recipients = "收件人",
    .recipient = "收件人",
    .nobody = "还没有收件人。下面的第一条命令会添加一个。",
    .first_of = "前 {} 个，共 {} 个。",
    .how_to_send = "怎样发送",
    .add = "添加收件人",
    .send = "给它发一条消息",
    .send_later = "发一条五秒后送达的消息",
    .receive = "等待消息",
    .ack = "处理完后，用消息的租约（lease）确认，否则它会再次送达",
    .lease = "租约",
    .hello = "你好",
    .tea = "该喝茶了",
    .more = "Prometheus 指标：<a href=\"/metrics\">/metrics</a> · 健康检查：<a href=\"/healthz\">/healthz</a>",
    .other_language = "English",
    .other_code = "en",
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

// 1234567 -> 1,234,567
std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  for (int at = static_cast<int>(digits.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string tile(std::string_view label, std::int64_t number, bool main = false) {
  return fmt::format("<div class=\"tile{}\"><dt>{}</dt><dd>{}</dd></div>\n", main ? " main" : "", label,
                     grouped(number));
}

std::string totals_html(const bus::Totals& totals, const Words& words) {
  return tile(words.pending, totals.live.pending, true) + tile(words.delayed, totals.live.delayed, true) +
         tile(words.in_flight, totals.live.in_flight, true) + tile(words.acked, totals.acked) +
         tile(words.cancelled, totals.cancelled) + tile(words.expired, totals.expired) + tile(words.dead, totals.dead);
}

std::string recipients_html(const HomePage& page, const Words& words) {
  if (page.recipients.empty()) return fmt::format("<p class=\"quiet\">{}</p>\n", words.nobody);
  std::string rows;
  for (const HomePage::Row& row : page.recipients)
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(row.name),
                        grouped(row.counts.pending), grouped(row.counts.delayed), grouped(row.counts.in_flight));
  std::string html = fmt::format(
      "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">{}</th><th scope=\"col\">{}</th><th scope=\"col\">{}</th>"
      "<th scope=\"col\">{}</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      words.recipient, words.pending, words.delayed, words.in_flight, rows);
  if (page.recipients_in_all > page.recipients.size())
    html += fmt::format("<p class=\"quiet\">{}</p>\n",
                        fmt::format(fmt::runtime(words.first_of), page.recipients.size(),
                                    grouped(static_cast<std::int64_t>(page.recipients_in_all))));
  return html;
}

std::string commands_html(const HomePage& page, const Words& words) {
  const auto command = [&page](std::string_view title, std::string_view path, std::string_view body) {
    std::string line = fmt::format("curl -s http://{}{} \\\n", page.address, path);
    if (page.needs_token) line += "  -H \"Authorization: Bearer $TOKEN\" \\\n";
    line += fmt::format("  -H 'Content-Type: application/json' \\\n  -d '{}'", body);
    return fmt::format("<h3>{}</h3>\n<pre tabindex=\"0\"><code>{}</code></pre>\n", title, escaped(line));
  };
  return command(words.add, "/v1/agents", R"({"id":"worker"})") +
         command(words.send, "/v1/messages",
                 fmt::format(R"({{"to":"worker","payload":{{"text":"{}"}}}})", words.hello)) +
         command(words.send_later, "/v1/messages",
                 fmt::format(R"({{"to":"worker","payload":{{"text":"{}"}},"delayMs":5000}})", words.tea)) +
         command(words.receive, "/v1/mailboxes/worker:receive", R"({"max":10,"waitMs":30000})") +
         command(words.ack, "/v1/mailboxes/worker:ack", fmt::format(R"({{"leases":["{}"]}})", words.lease));
}

}  // namespace

Language choose_language(std::string_view query, std::string_view accept_language) {
  if (const auto pairs = query_pairs(query)) {
    for (const auto& [name, value] : *pairs)
      if (name == "lang") return value.starts_with("zh") ? Language::chinese : Language::english;
  }
  // "zh-CN,zh;q=0.9,en;q=0.8": the highest weight wins, the first one among equals.
  Language best = Language::english;
  double best_weight = 0;
  while (!accept_language.empty()) {
    std::string_view entry = accept_language.substr(0, accept_language.find(','));
    accept_language.remove_prefix(std::min(accept_language.size(), entry.size() + 1));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    double weight = 1;
    if (const std::size_t q = entry.find("q="); q != std::string_view::npos)
      std::from_chars(entry.data() + q + 2, entry.data() + entry.size(), weight);
    const bool chinese = entry.starts_with("zh");
    if ((chinese || entry.starts_with("en")) && weight > best_weight) {
      best = chinese ? Language::chinese : Language::english;
      best_weight = weight;
    }
  }
  return best;
}

std::string home_page(const HomePage& page, Language language) {
  const Words& words = language == Language::chinese ? kChinese : kEnglish;
  return fmt::format(R"(<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Belfry</title>
<link rel="icon" href="/belfry.svg" type="image/svg+xml">
<link rel="stylesheet" href="/belfry.css">
</head>
<body>
<header>
<img src="/belfry.svg" alt="" width="44" height="44">
<div>
<h1>Belfry <span class="version">{version}</span></h1>
<p>{lead}</p>
</div>
<nav><span class="state{state_class}">{state}</span> <a href="/about?lang={other_code}" lang="{other_code}">{other_language}</a></nav>
</header>
<main>
<section>
<h2>{messages}</h2>
<dl class="tiles">
{totals}</dl>
</section>
<section>
<h2>{recipients_title}</h2>
{recipients}</section>
<section>
<h2>{how_to_send}</h2>
{commands}</section>
</main>
<footer><p>{more}</p></footer>
</body>
</html>
)",
                     fmt::arg("language", words.language), fmt::arg("version", BELFRY_VERSION),
                     fmt::arg("lead", words.lead), fmt::arg("state_class", page.stopping ? " stopping" : ""),
                     fmt::arg("state", page.stopping ? words.stopping : words.running),
                     fmt::arg("other_code", words.other_code), fmt::arg("other_language", words.other_language),
                     fmt::arg("messages", words.messages), fmt::arg("totals", totals_html(page.totals, words)),
                     fmt::arg("recipients_title", words.recipients),
                     fmt::arg("recipients", recipients_html(page, words)), fmt::arg("how_to_send", words.how_to_send),
                     fmt::arg("commands", commands_html(page, words)), fmt::arg("more", words.more));
}

std::string_view home_style() {
  return R"(:root {
  --ground: #f7f5f0; --card: #ffffff; --ink: #23201b; --quiet: #6c665c; --line: #e2ddd2; --accent: #8a5a12;
  --good: #2c6e49; --warn: #a4510b; --code: #f1ede4; --shade: rgb(0 0 0 / 22%);
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #17161a; --card: #201f24; --ink: #ece8e1; --quiet: #a39d92; --line: #35333a; --accent: #e0b060;
    --good: #7fc79b; --warn: #f0a868; --code: #19181c; --shade: rgb(255 255 255 / 24%);
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 3rem; max-width: 60rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.55 system-ui, "Noto Sans", "Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif;
}
header { display: flex; flex-wrap: wrap; gap: 0.75rem 1rem; align-items: center; margin-bottom: 1.5rem; }
header > div { flex: 1 1 16rem; }
header p { margin: 0; color: var(--quiet); }
h1 { margin: 0; font-size: 1.7rem; line-height: 1.2; letter-spacing: -0.01em; }
h2 { margin: 0 0 0.9rem; font-size: 1.1rem; }
h3 { margin: 1.1rem 0 0.4rem; font-size: 0.95rem; font-weight: 600; }
h2 + h3 { margin-top: 0; }
.version { font-size: 0.9rem; font-weight: 400; color: var(--quiet); }
nav { display: flex; gap: 0.9rem; align-items: center; font-size: 0.9rem; }
a { color: var(--accent); text-underline-offset: 0.15em; }
.state::before {
  content: ""; display: inline-block; width: 0.55rem; height: 0.55rem; margin-right: 0.45rem; border-radius: 50%;
  background: var(--good);
}
.state.stopping::before { background: var(--warn); }
section {
  margin-bottom: 1.25rem; padding: 1.25rem; background: var(--card); border: 1px solid var(--line); border-radius: 0.75rem;
}
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(6.25rem, 1fr)); gap: 1rem; margin: 0; }
.tile dt { font-size: 0.85rem; color: var(--quiet); }
.tile dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.tile.main dd { font-weight: 650; color: var(--accent); }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.4rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child { padding-left: 0; text-align: left; }
th:last-child, td:last-child { padding-right: 0; }
thead th { font-size: 0.85rem; font-weight: 500; color: var(--quiet); }
tbody th { font-weight: 500; min-width: 7rem; white-space: normal; overflow-wrap: anywhere; }
tbody tr:last-child > * { border-bottom: 0; }
pre {
  margin: 0; padding: 0.8rem 1rem; overflow-x: auto; border: 1px solid var(--line); border-radius: 0.5rem;
  /* A shade at an edge behind which there is more: covers that scroll with the text lie over shades that do not. */
  background:
    linear-gradient(to right, var(--code) 40%, transparent) 0 0 / 2.5rem 100% no-repeat local,
    linear-gradient(to left, var(--code) 40%, transparent) 100% 0 / 2.5rem 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) 0 0 / 0.8rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) 100% 0 / 0.8rem 100% no-repeat scroll,
    var(--code);
  font: 0.85rem/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
}
.quiet, footer { color: var(--quiet); font-size: 0.9rem; }
.quiet { margin: 0.6rem 0 0; }
@media (max-width: 30rem) {
  body { padding: 1.25rem 0.85rem 2rem; }
  section { padding: 1rem; }
}
)";
}

std::string_view home_icon() {
  return R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><path d="M6 22 24 5l18 17" fill="none" stroke="#8a5a12" stroke-width="3.5" stroke-linecap="round" stroke-linejoin="round"/><path d="M11 24v19M37 24v19M7 43h34" fill="none" stroke="#8a5a12" stroke-width="3.5" stroke-linecap="round"/><path d="M24 17c-5 0-7 4-7 9 0 4-1 6-2.500 7.500h19C32 32 31 30 31 26c0-5-2-9-7-9z" fill="#d99a2b"/><circle cx="24" cy="36" r="2.600" fill="#8a5a12"/></svg>
)";
}

}  // namespace belfry::server
