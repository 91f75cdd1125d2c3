// Calls tools: checks the arguments, records the call, and gives every failure back as a value that a model can act on.
//
// A call is recorded before it has any effect and again when it has ended (A5); only what is too large, or comes in a
// name that cannot be one, is refused without a trace. Under the same call id a repeat gets the first one's result. A call
// that a crash interrupted, or that failed for a reason that has passed, may be made again under its id, and what it sent
// is not sent twice.
//
// Lives on the kernel's thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "belfry/base/limits.h"
#include "belfry/chat/chats.h"
#include "belfry/clock/clock.h"
#include "belfry/store/store.h"
#include "belfry/tool/call_tables.h"
#include "belfry/tool/schema.h"
#include "belfry/tool/tool.h"

namespace belfry::tool {

struct CallRequest {
  std::string tool;
  std::string arguments;  // JSON as it came
  ToolContext context;
  std::optional<Error> refusal{};  // the caller may not: nothing is done, and this is the result that is recorded
};

struct CallOutcome {
  std::int64_t number = 0;  // of the record
  bool ok = false;
  Errc code = Errc::invalid_argument;  // why not
  std::string result;                  // JSON: the tool's own, or {"error", "message", "violations"?}
  bool repeated = false;
};

class Executor {
 public:
  // Makes its tables. Before store.start(); throws store::Fault.
  // Records are kept for `retention`; 0: for ever.
  Executor(Clock& clock, store::Store& store, chat::Chats& chats, Millis retention = Millis{0});

  // A definition that does not compile is a mistake of ours. One of the same name takes the place of the one before.
  void add(std::unique_ptr<Tool> tool);
  // What is under way goes on.
  void remove(const std::string& name);
  // All, or those that are of use in this session.
  std::vector<const Definition*> definitions(const chat::Session* session = nullptr) const;

  const Tool* find(std::string_view name) const;
  // Whether a tool would take these arguments, as far as its schema says.
  Result<> check(std::string_view name, const std::string& arguments) const;

  // Refused only if the record could not be written: then nothing was done.
  Task<Result<CallOutcome>> call(CallRequest request);
  Task<Result<CallTables::Page>> calls(CallTables::Query query);

 private:
  struct Entry {
    std::unique_ptr<Tool> tool;
    Schema schema;  // of what the tool does not judge by itself
  };
  struct Begun;
  class Running;

  Result<Begun> begin(store::Connection& connection, const CallRecord& record) const;
  Task<CallOutcome> run(CallRecord record, std::optional<Error> refusal);
  Task<CallOutcome> perform(CallRecord& record, std::optional<Error> refusal);
  Task<void> end(CallRecord record);
  Task<Result<>> enter_session(ToolContext& context);
  std::optional<CallOutcome> misfit(const Entry& entry, const std::string& arguments) const;
  std::string names() const;
  WallTime now() const { return round_down(clock_.now().wall); }

  Clock& clock_;
  store::Store& store_;
  chat::Chats& chats_;
  Millis retention_;
  std::set<std::string> running_;    // the names of calls under way
  std::vector<CallRecord> unended_;  // have ended, which the disk did not take: written with the next
  std::map<std::string, std::shared_ptr<const Entry>, std::less<>> tools_;  // a call keeps what it began with
};

}  // namespace belfry::tool
