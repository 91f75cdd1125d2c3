#include "belfry/chat/drafts.h"

#include <algorithm>

#include <fmt/format.h>

#include "belfry/base/json.h"

namespace belfry::chat {
namespace {

constexpr std::size_t kDraftTextBytesMax = 100'000;
constexpr std::size_t kDraftIdBytesMax = 128;
// As many agents as think at once, and then some; each may be as long as a letter.
constexpr std::size_t kDraftsMax = 1'000;
// Whoever writes adds a word every few seconds; who has been silent for this long has given up.
constexpr Nanos kDraftAgeMax = std::chrono::minutes{5};

}  // namespace

Result<> Drafts::check(const Draft& draft) {
  if (draft.id.empty() || draft.id.size() > kDraftIdBytesMax)
    return fail(Errc::invalid_argument,
                fmt::format("draftId has {} bytes; 1 to {} are possible", draft.id.size(), kDraftIdBytesMax));
  if (draft.text.size() > kDraftTextBytesMax)
    return fail(Errc::too_large,
                fmt::format("text has {} bytes; at most {} are taken", draft.text.size(), kDraftTextBytesMax));
  return {};
}

Result<> Drafts::put(const std::string& session, const Draft& draft, BootTime now) {
  std::vector<Kept>& here = kept_[session];
  const auto known =
      std::find_if(here.begin(), here.end(), [&](const Kept& kept) { return kept.draft.id == draft.id; });
  if (known != here.end() && known->draft.from != draft.from)
    return fail(Errc::key_conflict, fmt::format("the draft {} is another agent's", draft.id));
  if (known != here.end() && !draft.text.empty()) {
    *known = {draft, now};
    return {};
  }
  if (known != here.end()) {
    here.erase(known);
    --count_;
  } else if (!draft.text.empty() && count_ >= kDraftsMax) {
    return fail(Errc::overloaded, fmt::format("{} drafts are being written, and that is the limit", kDraftsMax));
  } else if (!draft.text.empty()) {
    here.push_back({draft, now});
    ++count_;
  }
  if (here.empty()) kept_.erase(session);
  return {};
}

std::vector<Draft> Drafts::of(const std::string& session) const {
  std::vector<Draft> all;
  const auto here = kept_.find(session);
  if (here == kept_.end()) return all;
  for (const Kept& kept : here->second) all.push_back(kept.draft);
  return all;
}

std::optional<Draft> Drafts::said(const std::string& session, const Line& line) {
  const auto here = kept_.find(session);
  if (here == kept_.end()) return std::nullopt;
  const auto payload = json::parse(line.payload);
  if (!payload || payload->kind != json::Kind::object) return std::nullopt;
  const std::string id = json::text_in(*payload, "draftId");
  const auto known = std::find_if(here->second.begin(), here->second.end(), [&](const Kept& kept) {
    return kept.draft.id == id && kept.draft.from == line.from;
  });
  if (known == here->second.end()) return std::nullopt;
  Draft draft = std::move(known->draft);
  here->second.erase(known);
  --count_;
  if (here->second.empty()) kept_.erase(here);
  return draft;
}

std::vector<std::pair<std::string, Draft>> Drafts::forget_old(BootTime now) {
  std::vector<std::pair<std::string, Draft>> forgotten;
  for (auto here = kept_.begin(); here != kept_.end();) {
    for (const Kept& kept : here->second)
      if (now - kept.touched > kDraftAgeMax) forgotten.emplace_back(here->first, kept.draft);
    std::erase_if(here->second, [&](const Kept& kept) { return now - kept.touched > kDraftAgeMax; });
    here = here->second.empty() ? kept_.erase(here) : std::next(here);
  }
  count_ -= forgotten.size();
  return forgotten;
}

}  // namespace belfry::chat
