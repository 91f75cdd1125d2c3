// BELFRY_ASSERT: for our own bugs only, always on. Others' data is an error value, never an assertion.
#pragma once

namespace belfry {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}

#define BELFRY_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::belfry::assertion_failed(#condition, __FILE__, __LINE__))
