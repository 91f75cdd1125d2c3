#include "belfry/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace belfry {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "belfry: broken invariant: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace belfry
