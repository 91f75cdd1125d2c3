// belfry plugin: make one, see which there are, check one, and try it without a server.
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "belfry/app/bundled.h"
#include "belfry/app/client.h"
#include "belfry/app/commands/commands.h"
#include "belfry/clock/real_clock.h"
#include "belfry/plugin/catalog.h"
#include "belfry/plugin/process_host.h"
#include "belfry/plugin/walls.h"
#include "belfry/tool/schema.h"

namespace belfry::app {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string name;
  std::string folder = ".";
  std::string language = "python";
  std::vector<std::string> folders;
  std::string arguments = "{}";
  std::string sandbox = "usual";
  bool json = false;
};

Result<> check_schema(std::string_view text) {
  const auto schema = tool::Schema::compile(text);
  if (!schema) return std::unexpected(schema.error());
  return {};
}

// ---- new

constexpr std::string_view kExampleConfig = R"({{
  // The folder has the same name; agents call it local__{0}.
  "name": "{0}",
  "description": "Says hello to somebody. 向某人问好。",
  "inputSchema": {{
    "type": "object",
    "properties": {{
      "name": {{"type": "string", "description": "Whom to greet"}}
    }},
    "required": ["name"]
  }},
  // Agents may say when they want to hear of the result. It never reaches the handler.
  "schedule": true,
  // To run it twice does no harm, so it is simply run again after a crash.
  "idempotent": true,
  "timeoutMs": 60000
}}
)";

constexpr std::string_view kExamplePython = R"(#!/usr/bin/env python3
"""Reads one line of JSON, writes lines of JSON; the last one is the result. Belfry ends it at the timeout."""
import json
import sys


def say(line):
    print(json.dumps(line, ensure_ascii=False), flush=True)


request = json.loads(sys.stdin.readline())
name = request["args"].get("name", "").strip()
say({"progress": "greeting"})
if name:
    say({"success": True, "data": {"greeting": f"Hello, {name}!"}})
else:
    say({"success": False, "error": {"code": "no_name", "message": "name is empty; whom shall I greet?"}})
)";

constexpr std::string_view kExampleShell = R"(#!/bin/sh
# Reads one line of JSON, writes lines of JSON; the last one is the result. Belfry ends it at the timeout.
read -r request
printf '%s\n' '{"progress":"greeting"}'
# A shell reads no JSON; what came is handed back as it is, which always is JSON.
printf '{"success":true,"data":{"greeting":"Hello!","request":%s}}\n' "$request"
)";

void write_file(const fs::path& path, const std::string& text, fs::perms permissions) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  std::error_code ec;
  if (file) fs::permissions(path, permissions, ec);
  if (!file || ec) throw fs::filesystem_error("it cannot be written", path, ec);
}

// Under another name first: a folder of this name is there as a whole or not at all.
void make_folder(const fs::path& folder, const Flags& flags) {
  const fs::path unfinished = folder.parent_path() / fmt::format(".{}.{}", flags.name, ::getpid());
  try {
    fs::create_directories(folder.parent_path());
    fs::create_directory(unfinished);
    const auto readable =
        fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read | fs::perms::others_read;
    const auto runnable = readable | fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
    write_file(unfinished / "config.json", fmt::format(kExampleConfig, flags.name), readable);
    write_file(unfinished / "handler", std::string(flags.language == "sh" ? kExampleShell : kExamplePython), runnable);
    if (::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, folder.c_str(), RENAME_NOREPLACE) != 0)
      throw fs::filesystem_error("it cannot be made", folder, std::error_code(errno, std::generic_category()));
  } catch (const fs::filesystem_error& e) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    refuse(Errc::storage_failed, fmt::format("{}: {}", folder.string(), e.code().message()));
  }
}

void make(const Flags& flags) {
  if (const auto fits = plugin::check_plugin_name(flags.name); !fits) refuse_usage(fits.error().detail);
  const fs::path folder = fs::absolute(fs::path(flags.folder) / flags.name).lexically_normal();
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(folder, ignored)))
    refuse(Errc::already_exists, fmt::format("{} is there already; nothing was changed", folder.string()));
  make_folder(folder, flags);
  if (flags.json) {
    json::Writer writer;
    writer.object().field("name", flags.name).field("folder", folder.string());
    return print_json(writer.end().take());
  }
  std::printf("made %s with config.json and handler\n", printable(folder.string()).c_str());
  std::printf("try it:  belfry plugin try %s --args '{\"name\":\"Ada\"}'\n", printable(folder.string()).c_str());
  std::printf("use it:  belfry serve --plugins %s\n", printable(folder.parent_path().string()).c_str());
}

// ---- list and check

using WriteMore = void (*)(json::Writer& writer, const plugin::Plugin& plugin);

void write_plugin(json::Writer& writer, const plugin::Plugin& plugin, WriteMore write_more = nullptr) {
  writer.object().field("name", plugin.name).field("tool", "local__" + plugin.name);
  writer.field("description", plugin.description).field("schedule", plugin.takes_schedule);
  writer.field("idempotent", plugin.idempotent).field("mode", plugin.persistent ? "persistent" : "oneshot");
  writer.field("timeoutMs", plugin.timeout.count()).field("folder", plugin.folder.string());
  writer.key("command").array();
  for (const std::string& argument : plugin.command) writer.value(argument);
  writer.end().key("inputSchema").raw(plugin.parameters);
  if (write_more) write_more(writer, plugin);
  writer.end();
}

void print_catalog_json(const plugin::Catalog& catalog) {
  json::Writer writer;
  writer.object().key("plugins").array();
  for (const auto& one : catalog.all()) write_plugin(writer, *one);
  writer.end().key("broken").array();
  for (const auto& one : catalog.broken())
    writer.object().field("folder", one.folder.string()).field("why", one.why).end();
  print_json(writer.end().end().take());
}

void list(const Flags& flags) {
  std::vector<fs::path> folders(flags.folders.begin(), flags.folders.end());
  if (const auto bundled = bundled_plugins(); !bundled.empty()) folders.insert(folders.begin(), bundled);
  plugin::Catalog catalog(folders, check_schema);
  catalog.scan();
  if (flags.json) return print_catalog_json(catalog);
  for (const auto& one : catalog.all())
    std::printf("%-28s %10s  schedule: %-3s  %s\n", one->name.c_str(), readable(one->timeout).c_str(),
                one->takes_schedule ? "yes" : "no", printable(one->folder.string()).c_str());
  for (const auto& one : catalog.broken()) std::printf("broken: %s\n", printable(one.why).c_str());
  if (catalog.all().empty() && catalog.broken().empty())
    std::fprintf(stderr, "there are no plugins; `belfry plugin new NAME` makes one\n");
}

// The folder's real name, also for `.`.
plugin::Plugin read_folder(const Flags& flags) {
  std::error_code ec;
  fs::path folder = fs::absolute(flags.folder).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  if (!fs::is_directory(folder, ec)) refuse(Errc::not_found, fmt::format("there is no folder {}", flags.folder));
  auto plugin = plugin::read_plugin(folder, check_schema);
  if (!plugin) refuse(plugin.error().code, plugin.error().detail);
  return std::move(*plugin);
}

// ---- walls

std::string kernel_version() {
  utsname name{};
  ::uname(&name);
  return name.release;
}

// What this machine has.
void print_walls_here() {
  const plugin::KernelWalls here = plugin::walls_here();
  std::printf("walls on this machine (Linux %s):\n", printable(kernel_version()).c_str());
  const auto line = [](const char* label, bool there, const std::string& what) {
    std::printf("  %-10s %s\n", label, there ? what.c_str() : "none");
  };
  line("files", here.landlock_abi > 0, fmt::format("Landlock, ABI {}", here.landlock_abi));
  line("processes", here.namespaces, "namespaces of its own");
  line("calls", here.seccomp, "seccomp");
  line("network", here.namespaces || here.seccomp, here.namespaces ? "a namespace of its own" : "seccomp");
  const unsigned lacking = plugin::kWallsAlways & ~here.walls();
  if (lacking != 0)
    std::printf("  sandbox = \"strict\" would start nothing: it lacks %s\n", plugin::names_of_walls(lacking).c_str());
}

void write_walls(json::Writer& writer, const plugin::Plugin& plugin) {
  const plugin::KernelWalls here = plugin::walls_here();
  writer.key("asks").object().key("reads").array();
  for (const std::string& path : plugin.reads) writer.value(path);
  writer.end().field("writes", plugin.writes).field("network", plugin.no_network ? "none" : "any").end();
  writer.key("walls").object().field("landlockAbi", here.landlock_abi).field("namespaces", here.namespaces);
  writer.field("seccomp", here.seccomp).end();
}

void check(const Flags& flags) {
  const plugin::Plugin plugin = read_folder(flags);
  if (flags.json) {
    json::Writer writer;
    write_plugin(writer, plugin, write_walls);
    return print_json(writer.take());
  }
  std::printf("%s is right: agents can call it as local__%s\n", plugin.name.c_str(), plugin.name.c_str());
  const auto line = [](const char* label, const std::string& value) {
    std::printf("  %-10s %s\n", label, printable(value).c_str());
  };
  line("runs", fmt::format("{}", fmt::join(plugin.command, " ")));
  line("timeout", readable(plugin.timeout));
  line("schedule", plugin.takes_schedule ? "yes: callers may say when to report" : "no");
  line("mode", plugin.persistent ? "persistent" : "oneshot");
  if (!plugin.environment.empty()) line(".env", fmt::format("{} variables", plugin.environment.size()));
  line("reads",
       fmt::format("its folder, the system{}{}", plugin.reads.empty() ? "" : ", ", fmt::join(plugin.reads, ", ")));
  line("writes", fmt::format("its output folder{}{}", plugin.writes.empty() ? "" : ", ", plugin.writes));
  line("network", plugin.no_network ? "none" : "any");
  print_walls_here();
}

// ---- try

// A folder for what it writes; gone with this.
struct OutputFolder {
  OutputFolder() {
    std::string pattern = (fs::temp_directory_path() / "belfry-plugin-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) refuse(Errc::storage_failed, "there is no room for a folder of its output");
    path = pattern;
  }
  ~OutputFolder() {
    std::error_code ignored;
    if (fs::is_empty(path, ignored)) fs::remove(path, ignored);
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  fs::path path;
};

void print_progress(const std::string& progress, bool json) {
  std::fprintf(stderr, "%s\n", json ? progress.c_str() : printable("progress: " + progress).c_str());
}

Task<void> perform(plugin::ProcessHost& host, Clock& clock, plugin::Job job, bool json, plugin::Outcome& outcome) {
  plugin::Host::Progress progress = [json](const std::string& text) { print_progress(text, json); };
  outcome = co_await host.perform(std::move(job), std::move(progress), nullptr);
  const BootTime deadline = clock.now().boot + std::chrono::seconds{5};
  co_await host.stop(deadline);
}

plugin::Outcome run(plugin::Job job, const Flags& flags) {
  asio::io_context context(1);
  RealClock clock(context);
  plugin::HostOptions options;
  options.sandbox = *plugin::sandbox_of(flags.sandbox);
  plugin::ProcessHost host(context, clock, std::move(options));
  plugin::Outcome outcome;
  asio::co_spawn(context, perform(host, clock, std::move(job), flags.json, outcome), [&](std::exception_ptr failed) {
    clock.stop();
    if (failed) std::rethrow_exception(failed);
  });
  context.run();
  return outcome;
}

void print_outcome(const plugin::Outcome& outcome, bool json) {
  json::Writer writer;
  writer.object().field("success", outcome.success);
  if (outcome.success) {
    writer.key("data").raw(outcome.data);
  } else {
    writer.key("error").object().field("code", outcome.code).field("message", outcome.message).end();
  }
  if (json) {
    print_json(writer.end().take());
  } else if (outcome.success) {
    print_json(outcome.data);
  } else {
    std::fflush(stdout);
    std::fprintf(stderr, "failed: %s (%s)\n", printable(outcome.message).c_str(), outcome.code.c_str());
  }
}

void check_arguments(const Flags& flags, const plugin::Plugin& plugin) {
  const auto value = json::parse(flags.arguments);
  if (!value) refuse_usage(fmt::format("--args is not JSON: {}", value.error().detail));
  if (value->kind != json::Kind::object) refuse_usage("--args is no JSON object");
  if (plugin.takes_schedule && json::find(*value, "schedule"))
    refuse_usage("schedule is for the server, which reports later; the plugin itself never sees it");
  const auto schema = tool::Schema::compile(plugin.parameters);
  if (!schema) return;  // read_plugin has checked it
  for (const tool::Violation& violation : schema->check(*value)) refuse_usage("--args: " + tool::sentence(violation));
}

void try_it(const Flags& flags) {
  plugin::Plugin plugin = read_folder(flags);
  check_arguments(flags, plugin);
  const OutputFolder output;
  plugin::Job job{.plugin = std::make_shared<const plugin::Plugin>(plugin),
                  .arguments = flags.arguments,
                  .output_dir = output.path.string(),
                  .timeout = plugin.timeout};
  json::Writer context;
  context.object().field("runId", "try").field("stepIndex", 0).field("idempotencyKey", "try-0");
  context.field("timeoutMs", plugin.timeout.count()).field("outputDir", job.output_dir);
  job.context = context.end().take();
  const plugin::Outcome outcome = run(std::move(job), flags);
  print_outcome(outcome, flags.json);
  std::error_code ignored;
  if (!fs::is_empty(output.path, ignored))
    std::fprintf(stderr, "it left files in %s\n", printable(output.path.string()).c_str());
  if (!outcome.success) throw CLI::RuntimeError(kExitRefused);
}

CLI::App* add_part(CLI::App& command, const char* name, const char* description, std::shared_ptr<Flags> flags,
                   void (*work)(const Flags&)) {
  CLI::App* const part = add_command(command, name, description);
  part->add_flag("--json", flags->json, "Print JSON");
  on_run(part, [flags, work] { work(*flags); });
  return part;
}

}  // namespace

void add_plugin(CLI::App& app) {
  CLI::App* const command = add_command(app, "plugin", "Tools of your own, in any language: new, list, check, try");
  command->require_subcommand(1);

  auto flags = std::make_shared<Flags>();
  CLI::App* part = add_part(*command, "new", "Make a folder with a plugin that works", flags, make);
  part->add_option("name", flags->name, "Its name: letters, digits and _")->required();
  part->add_option("--dir", flags->folder, "Where to make it [here]")->type_name("DIR");
  part->add_option("--language", flags->language, "python or sh [python]")->check(CLI::IsMember({"python", "sh"}));

  flags = std::make_shared<Flags>();
  part = add_part(*command, "list", "The plugins there are, and those that are broken", flags, list);
  part->add_option("--plugins", flags->folders, "A folder of plugins, beside those that come with Belfry")
      ->type_name("DIR");

  flags = std::make_shared<Flags>();
  part = add_part(*command, "check", "Say what is wrong with a plugin", flags, check);
  part->add_option("folder", flags->folder, "Its folder")->required()->type_name("DIR");

  flags = std::make_shared<Flags>();
  part = add_part(*command, "try", "Run a plugin once, as a server would", flags, try_it);
  part->add_option("folder", flags->folder, "Its folder")->required()->type_name("DIR");
  part->add_option("--args", flags->arguments, "A JSON object, such as '{\"name\":\"Ada\"}' [{}]")->type_name("JSON");
  part->add_option("--sandbox", flags->sandbox, "strict, usual or off [usual]")
      ->check(CLI::IsMember({"strict", "usual", "off"}));
  part->footer("Progress goes to stderr, the result to stdout. Ends with 1 if the plugin failed.");
}

}  // namespace belfry::app
