// The bus's tables, and every statement on them. All of it runs on the store's thread.
//
// How a message lies on disk (docs/adr/0003 has the reasons and the measurements):
//   message    what was sent, by sequence: appended once, deleted when the message ends
//   due        the calendar: one narrow row a live message, keyed by a bucket that widens with distance (bucket.h)
//   backlog    pending messages of recipients that are far behind, in the order in which they will be received
//   ended      how each message ended, by hour, so that old ones are dropped in ranges
//   dead       dead letters; their message row stays
//   exempt     those that got a new time while what a stop forced is still being swept up
//   fresh_key, key_run, key_run_filter   the keys of idempotent sends (client_keys.h)
//   recipient  who can receive
//   tally      what the messages of each add up to: accepted = live + acked + cancelled + expired + dead (G14; tally.h)
// A live message has its message row and exactly one row in `due`, `backlog` or `dead`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "belfry/bus/bucket.h"
#include "belfry/bus/client_keys.h"
#include "belfry/bus/rows.h"
#include "belfry/bus/tally.h"
#include "belfry/store/store.h"

namespace belfry::bus {

// What a start reads: small, whatever the tables hold.
struct BusState {
  std::int64_t last_sequence = 0;  // no sequence up to here may be given out again
  std::int64_t ahead_ms = 0;       // how far the calendar runs before the wall clock (timeline.h)
  bool clean_stop = true;
  std::optional<Forced> forced;
  std::vector<CalendarRow> exempt;  // got a new time since, though they are older than that stop
  std::vector<RecipientRow> recipients;
};

// One look into the calendar. It is read in order of time, whatever the level, and in pages.
struct CalendarLook {
  std::int64_t from_ms[kLevels] = {};   // per level: buckets that start before this have been read
  std::int64_t until_ms[kLevels] = {};  // per level: buckets that start here or later are still too far away
  std::int64_t sequence_after = 0;      // only rows above this sequence
  std::int64_t sequence_up_to = 0;      // and up to this one; later ones enter memory by themselves
  std::optional<Bucket> partial;        // the bucket in which the last page ended
  std::int64_t partial_after = 0;       // and its last row's sequence
  int rows_max = 0;
  bool split_crowded = true;  // false: a crowded bucket is read in pages like any other
};

struct CalendarPage {
  std::vector<CalendarRow> rows;
  std::int64_t from_ms[kLevels] = {};  // as in the look, after this page
  std::optional<Bucket> partial;       // the page ended inside this bucket
  std::optional<Bucket> crowded;       // a bucket too full to be taken whole: split it, then look again
  std::int64_t last_sequence = 0;      // of the last row that was read
  bool finished = false;               // nothing is left in the range of the look
};

struct InsertOutcome {
  std::int64_t sequence = 0;  // of the first send when the key was known
  bool repeated = false;
  bool conflict = false;  // the key was used for another body
  std::optional<std::int64_t> scheduled_ms;
};

// A message that is not in memory, as cancel, reschedule and the like find it.
struct FoundMessage {
  MessageRow row;
  std::vector<Move> moves;
  bool dead = false;
  std::int64_t died_ms = 0;
  std::optional<std::int64_t> delivered_ms;  // of a dead one
  std::optional<std::int64_t> late_ms;
  std::string reason;
};

class MessageTables final : public store::GroupHook {
 public:
  explicit MessageTables(std::size_t tally_bytes) : tally_(tally_bytes) {}

  static void migrate(store::Connection& connection);
  static BusState load(store::Connection& connection);
  // For new data: its first sequence is the one behind this.
  static void begin_after(store::Connection& connection, std::int64_t sequence);

  // Writes; what they change in the counters is summed up and written once a group.
  InsertOutcome insert(store::Connection& connection, const MessageRow& row, std::int64_t keys_not_before_ms);
  // What `insert` says if the key was used before.
  std::optional<InsertOutcome> repeated(store::Connection& connection, const MessageRow& row,
                                        std::int64_t keys_not_before_ms);
  // False if it had ended already.
  bool end(store::Connection& connection, const EndedRow& row);
  // Fills in what the caller does not know (times, sender) from the message row. False if there is no such message.
  bool die(store::Connection& connection, const DeadRow& row);
  static bool is_removed(store::Connection& connection, RecipientNumber number);
  void revive(store::Connection& connection, const FoundMessage& found, const CalendarRow& target,
              std::optional<std::int64_t> look_ms, const Move& move);
  void drop_dead(store::Connection& connection, const FoundMessage& found, std::int64_t now_ms, std::string_view by);
  void set_attempts(store::Connection& connection, std::int64_t sequence, int attempts);
  // False if it does not lie in that bucket any more.
  bool move_to_backlog(store::Connection& connection, std::int64_t bucket, RecipientNumber recipient,
                       const Order& order, std::optional<std::int64_t> late_ms, std::optional<std::int64_t> expires_ms);
  void reschedule(store::Connection& connection, const Location& from, const CalendarRow& target,
                  std::optional<std::int64_t> look_ms, const Move& move);
  void note_sequence(std::int64_t sequence) { last_sequence_ = std::max(last_sequence_, sequence); }

  // Moves rows with sequences behind `after`, up to `up_to`, to finer buckets; says how many.
  static int split_bucket(store::Connection& connection, Bucket crowded, std::int64_t after, std::int64_t up_to,
                          std::int64_t now_ms, int rows_max);
  static void replace(store::Connection& connection, const CalendarRow& row, std::int64_t look_ms, Bucket target);
  static void set_forced(store::Connection& connection, Forced forced);
  static void forced_swept(store::Connection& connection);
  static void set_clean_stop(store::Connection& connection, bool clean);
  static void set_ahead(store::Connection& connection, std::int64_t ahead_ms);

  static RecipientNumber add_recipient(store::Connection& connection, const RecipientRow& row);
  static void remove_recipient(store::Connection& connection, RecipientNumber number, std::int64_t now_ms);
  // Those that were removed before, and of which no message and no record is left.
  std::vector<RecipientNumber> forget_removed(store::Connection& connection, std::int64_t before_ms);

  // Drops what ended before, a bounded number of rows; true if there may be more.
  bool drop_old(store::Connection& connection, std::int64_t before_ms, int rows_max);

  // Reads what the writes below know by heart: before the first of them.
  void prepare_to_write(store::Connection& connection);
  // The keys of idempotent sends.
  ClientKeys& keys() { return keys_; }

  // Reads.
  static CalendarPage read_calendar(store::Connection& connection, const CalendarLook& look);
  static std::vector<BacklogRow> read_backlog(store::Connection& connection, RecipientNumber recipient,
                                              const Order& after, std::optional<Order> before, int rows_max,
                                              std::size_t bytes_max);
  static std::vector<Order> read_backlog_orders(store::Connection& connection, RecipientNumber recipient,
                                                const Order& after, int rows_max);
  // A payload may be a mebibyte: who reads many messages and wants none of theirs says so.
  enum class Payload { wanted, left_out };
  static std::optional<Body> read_body(store::Connection& connection, std::int64_t sequence,
                                       Payload payload = Payload::wanted);
  static std::optional<FoundMessage> find(store::Connection& connection, std::int64_t sequence,
                                          Payload payload = Payload::wanted);
  // What lies in a backlog past its `expiresAt`, in order of that, behind a row of an earlier page.
  struct Overdue {
    std::int64_t expires_ms = 0;
    RecipientNumber recipient = 0;
    Order order;
  };
  static std::vector<Overdue> read_expired(store::Connection& connection, const Overdue& after, std::int64_t now_ms,
                                           int rows_max);
  // Where the calendar or the backlog has a live message.
  static std::optional<Location> locate(store::Connection& connection, const FoundMessage& found);
  struct Ended {
    EndedRow row;
    std::vector<Move> moves;
    std::string sender;
    std::string task;
    std::int64_t created_ms = 0;
  };
  static Ended read_ended(const store::Rows& rows);
  static std::optional<Ended> find_ended(store::Connection& connection, std::int64_t sequence);

  // One page of a listing: examines a bounded number of rows and says where to go on. `cursor` is opaque; empty is the
  // beginning, and an empty `next` the end.
  struct ListQuery {
    std::optional<RecipientNumber> recipient;
    std::string sender;
    std::string cursor;
    int limit = 100;
    int examine_max = 0;
  };
  struct ListedMessage {
    FoundMessage found;
    Location location;
  };
  struct ListPage {
    std::vector<ListedMessage> live;
    std::vector<Ended> ended;
    std::string next;
  };
  static bool is_cursor(std::string_view text);
  static ListPage list_live(store::Connection& connection, const ListQuery& query);
  static ListPage list_dead(store::Connection& connection, const ListQuery& query);
  static ListPage list_ended(store::Connection& connection, const ListQuery& query, MessageState state);

  // Recomputes what must add up, for `doctor`: one line a problem.
  static std::vector<std::string> conservation_problems(store::Connection& connection);

  void before_commit(store::Connection& connection, store::Room room) override;
  void after_group(bool committed) override;

 private:
  void remove_place(store::Connection& connection, std::int64_t sequence, RecipientNumber recipient, std::int64_t place,
                    const Order& order);

  ClientKeys keys_;
  Tally tally_;
  std::int64_t last_sequence_ = 0;  // of this group
  std::int64_t reserved_ = 0;       // sequences up to here are reserved in the store
  std::int64_t reserving_ = 0;      // by this group
};

}  // namespace belfry::bus
