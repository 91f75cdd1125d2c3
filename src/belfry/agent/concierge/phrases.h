// What the concierge says, in both languages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/when/when.h"

namespace belfry::agent {

struct Listed {
  std::string text;
  WallTime at;
};

// One speaker in one language and one zone.
class Phrases {
 public:
  Phrases(when::Language language, when::Zone zone, WallTime now)
      : chinese_(language == when::Language::chinese), zone_(zone), now_(now) {}

  // What is stored to be said later, and what it is about when one looks at it again.
  std::string reminder(const std::string& what) const;
  static std::string subject(const std::string& text);
  std::string passed_on(const std::string& from, const std::string& text) const;
  std::string telling(const std::string& to, const std::string& text) const;

  // Answers.
  std::string will_remind(const std::string& what, WallTime at) const;
  std::string will_tell(const std::string& name, const std::string& text, WallTime at) const;
  std::string told(const std::string& name, const std::string& text) const;
  std::string one_at_a_time() const;
  std::string nobody(const std::string& name) const;
  std::string list(const std::vector<Listed>& tasks, bool more) const;
  std::string cancelled(const std::vector<std::string>& texts) const;
  std::string moved(const std::string& text, WallTime at) const;
  std::string past(WallTime at) const;
  std::string bad_time(const std::string& reason) const;
  std::string too_late() const;
  std::string failed(const std::string& reason) const;
  std::string nothing_scheduled() const;
  std::string dropped() const;
  std::string help() const;
  std::string greeting() const;
  std::string welcome() const;
  std::string not_understood() const;
  std::string private_only() const;

  // Questions.
  std::string ask_when(const std::string& what) const;
  std::string ask_what() const;
  std::string ask_which_time(const std::string& what) const;
  std::string ask_once(const std::string& what, WallTime at) const;
  std::string ask_which(bool cancel, bool none_fits) const;
  std::string ask_new_time(const std::string& text) const;
  std::vector<std::string> usual_times() const;  // as they are read again
  std::string yes_once() const;
  std::string no() const;
  std::string never_mind() const;
  std::string time_label(WallTime at) const;  // short: Tue 17 Nov 09:00
  std::string task_label(const Listed& task) const;

 private:
  std::string pick(std::string_view english, std::string_view chinese) const {
    return std::string(chinese_ ? chinese : english);
  }
  std::string moment(WallTime at) const;

  bool chinese_;
  when::Zone zone_;
  WallTime now_;
};

}  // namespace belfry::agent
