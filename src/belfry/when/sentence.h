// Says a time back, in both languages, so that it can be read again.
#pragma once

#include <string>

#include "belfry/when/when.h"

namespace belfry::when {

// Thursday 19 November 2026 at 09:00 (UTC+08:00); 2026年11月19日星期四 09:00（UTC+08:00）; every Monday at 09:00; 每周一 09:00.
// Read again it gives the same instant; a duration is said by the moment at which it ends.
std::string sentence(const Reading& reading, Language language);

// in 17 hours and 40 minutes, 3 days ago, now; 17小时40分钟后, 3天前, 现在
std::string distance(WallTime at, WallTime now, Language language);

}  // namespace belfry::when
