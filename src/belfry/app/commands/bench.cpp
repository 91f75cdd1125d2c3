#include "belfry/app/commands/commands.h"

namespace belfry::app {

void add_bench(CLI::App&) {}

}  // namespace belfry::app
