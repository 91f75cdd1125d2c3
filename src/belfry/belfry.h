// Belfry as a library: everything a program needs to run the bus without the server. examples/ shows how.
#pragma once

#include "belfry/base/log.h"
#include "belfry/base/random.h"
#include "belfry/bus/message_bus.h"
#include "belfry/clock/real_clock.h"
#include "belfry/clock/simulated_clock.h"
#include "belfry/due/timekeeper.h"
#include "belfry/store/sqlite/sqlite_connection.h"
#include "belfry/store/store.h"
