// The bytes of an HTTP answer, as they come in, to its head and the pieces of its body.
//
// Any split of the bytes gives the same head and the same body. What is kept is what cannot be read yet: part of a head or
// of the line in front of a chunk, which are bounded. Answers before the answer (100 Continue, 103 Early Hints) are skipped.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "belfry/base/time.h"

namespace belfry::net {

class AnswerParser {
 public:
  struct Head {
    int status = 0;
    std::optional<Millis> retry_after;
  };

  AnswerParser();
  ~AnswerParser();

  void feed(std::string_view bytes);
  // The other side has closed in good order: the end of a body whose length nobody announced.
  void end();

  const std::optional<Head>& head() const { return head_; }
  // What has come of the body since it was asked last.
  std::string take_body();
  // The answer has come to its end.
  bool complete() const;
  // Nothing more is to be fed: it is complete, or no answer.
  bool over() const { return complete() || !problem_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  struct Impl;

  void read_pending();
  void note_head();

  std::unique_ptr<Impl> impl_;  // Beast's parser, of which nobody else needs to know
  std::string pending_;
  std::optional<Head> head_;
  std::string problem_;
  int interim_ = 0;
  bool wants_more_ = false;
};

}  // namespace belfry::net
