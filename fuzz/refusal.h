// What every refusal of a reader is held to.
#pragma once

#include "belfry/base/assert.h"
#include "belfry/base/result.h"

namespace belfry::fuzz {

// It says something, and is of bearable length.
template <class T>
void check(const Result<T>& result) {
  if (result) return;
  BELFRY_ASSERT(!result.error().detail.empty());
  BELFRY_ASSERT(result.error().detail.size() < 4'000);
}

}  // namespace belfry::fuzz
