#include "belfry/agent/concierge/words.h"

#include <array>

namespace belfry::agent {
namespace {

// Traditional characters of the frames, and their simplified forms; three bytes each.
struct Form {
  std::string_view traditional;
  std::string_view simplified;
};
constexpr std::array<Form, 30> kForms{
    {{"幫", "帮"}, {"刪", "删"}, {"鬧", "闹"}, {"鐘", "钟"}, {"訂", "订"}, {"設", "设"}, {"個", "个"}, {"條", "条"},
     {"說", "说"}, {"發", "发"}, {"給", "给"}, {"嗎", "吗"}, {"別", "别"}, {"記", "记"}, {"煩", "烦"}, {"請", "请"},
     {"麼", "么"}, {"們", "们"}, {"後", "后"}, {"點", "点"}, {"訴", "诉"}, {"遲", "迟"}, {"換", "换"}, {"調", "调"},
     {"為", "为"}, {"謝", "谢"}, {"顯", "显"}, {"單", "单"}, {"務", "务"}, {"時", "时"}}};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// One blank where there were several; quotation marks and spaces of other scripts as ASCII has them.
std::string tidy(std::string_view text) {
  std::string out(text);
  replace_all(out, "’", "'");
  replace_all(out, "　", " ");
  replace_all(out, "\u00A0", " ");
  std::string single;
  for (const char c : out) {
    if (!is_space(c)) {
      single.push_back(c);
    } else if (!single.empty() && single.back() != ' ') {
      single.push_back(' ');
    }
  }
  return single;
}

}  // namespace

Words::Words(std::string_view text, bool chinese) : said_(tidy(text)), plain_(said_), chinese_(chinese) {
  for (const Form& form : kForms) replace_all(plain_, form.traditional, form.simplified);
  trim();
}

std::optional<Found> Words::find(const re2::RE2& pattern) const {
  const int count = pattern.NumberOfCapturingGroups() + 1;
  std::vector<re2::StringPiece> pieces(static_cast<std::size_t>(count));
  if (!pattern.Match(plain_, 0, plain_.size(), re2::RE2::UNANCHORED, pieces.data(), count)) return std::nullopt;
  const auto span = [this](const re2::StringPiece& piece) {
    if (piece.data() == nullptr) return Span{};
    const auto begin = static_cast<std::size_t>(piece.data() - plain_.data());
    return Span{begin, begin + piece.size()};
  };
  Found found{.whole = span(pieces[0])};
  for (std::size_t i = 1; i < pieces.size(); ++i) found.groups.push_back(span(pieces[i]));
  return found;
}

void Words::take(Span span) {
  // One blank is left between words, however many there were around.
  const auto blank_at = [this](std::size_t at) { return at < said_.size() && said_[at] == ' '; };
  if (!chinese_ && span.begin > 0 && blank_at(span.begin - 1)) --span.begin;
  if (!chinese_ && blank_at(span.end)) ++span.end;
  const char* const joint = chinese_ ? "" : " ";
  said_.replace(span.begin, span.end - span.begin, joint);
  plain_.replace(span.begin, span.end - span.begin, joint);
  trim();
}

void Words::take_all(const re2::RE2& pattern) {
  while (const auto found = find(pattern)) {
    if (found->whole.empty()) return;
    take(found->whole);
  }
}

void Words::keep(Span span) {
  said_ = said_.substr(span.begin, span.end - span.begin);
  plain_ = plain_.substr(span.begin, span.end - span.begin);
  trim();
}

void Words::trim() {
  std::size_t begin = 0;
  std::size_t end = said_.size();
  while (begin < end && is_space(said_[begin])) ++begin;
  while (end > begin && is_space(said_[end - 1])) --end;
  said_ = said_.substr(begin, end - begin);
  plain_ = plain_.substr(begin, end - begin);
}

}  // namespace belfry::agent
