// Every limit of the kernel, each with its reason. What only one file needs stands in that file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "belfry/base/time.h"

namespace belfry {

// One message, and so one request body: large enough for a document, small enough that a thousand fit in memory.
inline constexpr std::size_t kBodyBytesMax = 1u << 20;
// A batch is many messages in one request; it is taken in line by line, so only its total is bounded.
inline constexpr std::size_t kBatchBytesMax = 32u << 20;
inline constexpr int kBatchLinesMax = 100'000;
// Deeper JSON is an attack on whoever parses it recursively.
inline constexpr int kJsonDepthMax = 64;
inline constexpr std::size_t kIdBytesMax = 64;
inline constexpr std::size_t kKeyBytesMax = 256;
inline constexpr std::size_t kTaskIdBytesMax = 128;
inline constexpr int kRecipientsPerSendMax = 1'000;
// Recipients live in memory with their counters: about 400 bytes each.
inline constexpr int kRecipientsMax = 100'000;

// A group commit: larger ones delay their own callers more than they save.
inline constexpr int kGroupRowsMax = 2'000;
inline constexpr std::size_t kGroupBytesMax = 8u << 20;

// What one job may change, in pages: they stay in memory until they are committed. Jobs that could do more go in slices.
inline constexpr std::int64_t kJobBytesMax = 256 << 20;
// What may wait for the disk before senders are told to come back later.
inline constexpr int kStoreQueueMax = 20'000;
inline constexpr std::size_t kStoreQueueBytesMax = 64u << 20;
// Rows that one background step reads or moves: about 4 ms in which others wait.
inline constexpr int kChunkRows = 2'000;

inline constexpr int kReceiveMax = 1'000;
inline constexpr std::size_t kReceiveBytesMax = 8u << 20;
inline constexpr Millis kReceiveWaitMax{60'000};
inline constexpr Millis kLeaseDefault{30'000};
inline constexpr Millis kLeaseMin{100};
inline constexpr Millis kLeaseMax{12 * 3'600'000};
inline constexpr int kAttemptsMax = 5;
inline constexpr int kListPageMax = 1'000;
inline constexpr int kListRowsExaminedMax = 2'000;  // in one go: sends wait meanwhile
inline constexpr int kListRoundsMax = 50;           // of them for one page
inline constexpr Millis kRetentionDefault{7 * 86'400'000LL};
inline constexpr Millis kStopDeadlineDefault{30'000};

}  // namespace belfry
