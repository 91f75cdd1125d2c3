// The server's figures as Prometheus text.
#pragma once

#include <string>

#include "belfry/bus/message_bus.h"
#include "belfry/store/store.h"

namespace belfry::server {

std::string metrics_text(const bus::Totals& totals, const bus::LatenessHistogram& lateness,
                         const store::Statistics& store, int recipients, int connections, bool caught_up);

}  // namespace belfry::server
