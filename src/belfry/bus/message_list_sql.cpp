// The listings and the checks of MessageTables: reads that walk a bounded number of rows.
#include <fmt/format.h>

#include "belfry/bus/message_tables.h"

namespace belfry::bus {}
