// Belfry as a library: everything a program needs to run the kernel without the server. examples/ shows how.
// The bus stands alone; conversations, tools and agents are each built on those before.
#pragma once

#include "belfry/agent/processor.h"
#include "belfry/base/log.h"
#include "belfry/base/random.h"
#include "belfry/bus/message_bus.h"
#include "belfry/chat/chats.h"
#include "belfry/clock/real_clock.h"
#include "belfry/clock/simulated_clock.h"
#include "belfry/due/timekeeper.h"
#include "belfry/store/sqlite/sqlite_connection.h"
#include "belfry/store/store.h"
#include "belfry/tool/builtin/builtin.h"
#include "belfry/tool/executor.h"
