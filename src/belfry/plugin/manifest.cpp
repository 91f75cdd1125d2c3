#include "belfry/plugin/manifest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "belfry/base/fields.h"
#include "belfry/base/json.h"

namespace belfry::plugin {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDayMs = 86'400'000;
constexpr std::size_t kArgumentsMax = 64;
constexpr std::size_t kReadsMax = 32;
constexpr int kEditionEntriesMax = 1'000;
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
constexpr std::string_view kWordCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
constexpr std::string_view kIdCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-";
constexpr const char* kProgramFolders[] = {"/usr/local/bin", "/usr/bin", "/bin"};

// What a plugin says with "schedule": true. More than the three may stand in the object: whoever reads it refuses what it
// does not know, and says so better than a schema can.
constexpr std::string_view kScheduleSchema = R"({
  "description": "When the result is to be reported; the work itself begins at once. 何时汇报结果；任务会立即开始执行。Leave it out to be told as soon as there is a result. 不填则完成后立即汇报。",
  "oneOf": [
    {"type": "string", "description": "A time in everyday words, e.g. \"in 20 minutes\", \"tomorrow at 9\", \"明天早上9点\". 自然语言时间。"},
    {"type": "object", "required": ["when"], "additionalProperties": true, "properties": {
      "when": {"type": "string", "description": "The time, in words or as ISO 8601. 时间表达式。"},
      "language": {"type": "string", "description": "The language of `when`: zh, en or auto. 时间表达式的语言。"},
      "timezone": {"type": "string", "description": "A zone such as Asia/Shanghai. 时区。"}}}
  ]})";
constexpr std::string_view kScheduleShape =
    R"(it must take a string ("type": "string") or an object with "when", or both as oneOf; "schedule": false beside )"
    R"(inputSchema makes it a parameter of the plugin's own)";

std::unexpected<Error> wrong(std::string why) { return fail(Errc::invalid_argument, std::move(why)); }

Result<> read_range(const json::Fields& fields, std::string_view name, std::int64_t least, std::int64_t most,
                    std::int64_t& into) {
  BELFRY_CHECK(fields.whole(name, into));
  if (into < least || into > most)
    return wrong(fmt::format("{} is {}; a number from {} to {} belongs there", name, into, least, most));
  return {};
}

Result<> read_millis(const json::Fields& fields, std::string_view name, std::int64_t least, Millis& into) {
  std::int64_t ms = into.count();
  BELFRY_CHECK(read_range(fields, name, least, kDayMs, ms));
  into = Millis{ms};
  return {};
}

// Checked JSON without what stands between its parts: models pay for every blank of it.
std::string compact(std::string_view json) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_string = !in_string;
    if (in_string || (c != ' ' && c != '\n' && c != '\r' && c != '\t')) out += c;
    if (in_string && c == '\\') out += json[++i];
  }
  return out;
}

// ---- schedule (F1, F6)

bool is_type(json::Value value, std::string_view wanted) {
  return value.kind == json::Kind::string && json::text(value) == wanted;
}

bool takes_when(json::Value schema) {
  const auto properties = json::find(schema, "properties");
  return !properties || properties->kind != json::Kind::object || json::find(*properties, "when");
}

// Only as much as is needed to notice a parameter of another kind under this name.
bool has_schedule_shape(json::Value schema) {
  if (schema.kind != json::Kind::object) return false;
  for (const std::string_view list : {"oneOf", "anyOf"}) {
    const auto choices = json::find(schema, list);
    if (!choices || choices->kind != json::Kind::array) continue;
    const auto all = json::elements(*choices);
    if (std::any_of(all.begin(), all.end(), has_schedule_shape)) return true;
  }
  const auto type = json::find(schema, "type");
  if (!type) return false;
  const auto fits = [&](json::Value one) {
    return is_type(one, "string") || (is_type(one, "object") && takes_when(schema));
  };
  if (type->kind != json::Kind::array) return fits(*type);
  const auto types = json::elements(*type);
  return std::any_of(types.begin(), types.end(), fits);
}

std::string with_schedule(json::Value schema, std::string_view schedule) {
  json::Writer out;
  out.object();
  const auto write_properties = [&](const std::vector<json::Member>& properties) {
    out.key("properties").object();
    for (const json::Member& one : properties)
      if (one.key != "schedule") out.key(one.key).raw(one.value.raw);
    out.key("schedule").raw(schedule).end();
  };
  bool written = false;
  for (const json::Member& member : json::every_member(schema)) {
    if (member.key == "properties") {
      write_properties(json::every_member(member.value));
      written = true;
    } else {
      out.key(member.key).raw(member.value.raw);
    }
  }
  if (!written) write_properties({});
  return out.end().take();
}

struct Parameters {
  json::Value schema;
  std::optional<json::Value> schedule;  // the parameter of this name, if there is one
};

Result<Parameters> read_parameters(json::Value schema) {
  if (schema.kind != json::Kind::object) return json::wrong_type("inputSchema", schema, "a JSON Schema of an object");
  if (const auto type = json::find(schema, "type"); type && !is_type(*type, "object"))
    return wrong(R"(inputSchema: the type of a plugin's arguments is "object")");
  BELFRY_TRY(const auto once_each, json::members(schema));
  const auto properties = json::find(schema, "properties");
  if (!properties) return Parameters{schema, std::nullopt};
  if (properties->kind != json::Kind::object)
    return json::wrong_type("inputSchema.properties", *properties, "an object");
  BELFRY_TRY(const auto each_once, json::members(*properties));
  return Parameters{schema, json::find(*properties, "schedule")};
}

// Whose `schedule` is: nobody's, Belfry's or the plugin's own.
Result<> settle_schedule(const Parameters& parameters, std::optional<bool> declared, Plugin& plugin) {
  plugin.parameters = compact(parameters.schema.raw);
  if (declared == true) {
    if (parameters.schedule)
      return wrong(
          R"("schedule": true, but the plugin has a parameter of its own called schedule; leave out one of them)");
    plugin.parameters = compact(with_schedule(parameters.schema, kScheduleSchema));
    plugin.takes_schedule = true;
  } else if (parameters.schedule && !declared) {
    if (!has_schedule_shape(*parameters.schedule))
      return wrong(fmt::format("inputSchema.properties.schedule says when to report, but {}", kScheduleShape));
    plugin.takes_schedule = true;
  }
  return {};
}

std::vector<json::Value> elements_in(json::Value object, std::string_view name) {
  const auto list = json::find(object, name);
  return list && list->kind == json::Kind::array ? json::elements(*list) : std::vector<json::Value>{};
}

// What "#/$defs/one" names within a schema; nothing for what stands elsewhere, or nowhere.
std::optional<json::Value> part_of(json::Value schema, std::string_view reference) {
  if (reference == "#") return schema;
  if (!reference.starts_with("#/")) return std::nullopt;
  std::optional<json::Value> part = schema;
  for (const auto word : std::views::split(reference.substr(2), '/')) {
    std::string name{std::string_view(word)};
    for (const auto& [written, meant] : {std::pair{"~1", "/"}, std::pair{"~0", "~"}})
      for (std::size_t at = 0; (at = name.find(written, at)) != std::string::npos; ++at) name.replace(at, 2, meant);
    std::size_t index = 0;
    if (part->kind == json::Kind::object) {
      part = json::find(*part, name);
    } else if (part->kind == json::Kind::array &&
               std::from_chars(name.data(), name.data() + name.size(), index).ec == std::errc{}) {
      const auto parts = json::elements(*part);
      part = index < parts.size() ? std::optional(parts[index]) : std::nullopt;
    } else {
      return std::nullopt;
    }
    if (!part) return std::nullopt;
  }
  return part;
}

// Where a schema, or one that counts for the same object, requires `schedule`: "inputSchema.anyOf[1].required".
class ScheduleRequired {
 public:
  explicit ScheduleRequired(json::Value root) : root_(root) {}

  // Nothing: nowhere.
  std::optional<std::string> look(json::Value schema, const std::string& place) {
    if (schema.kind != json::Kind::object) return std::nullopt;
    if (has_schedule(elements_in(schema, "required"))) return place + ".required";
    for (const char* const list : {"allOf", "anyOf", "oneOf"}) {
      const auto parts = elements_in(schema, list);
      for (std::size_t i = 0; i < parts.size(); ++i)
        if (auto found = look(parts[i], fmt::format("{}.{}[{}]", place, list, i))) return found;
    }
    for (const char* const name : {"then", "else"})
      if (const auto part = json::find(schema, name))
        if (auto found = look(*part, fmt::format("{}.{}", place, name))) return found;
    if (auto found = look_at_dependents(schema, place)) return found;
    return look_behind(schema, place);
  }

 private:
  static bool has_schedule(const std::vector<json::Value>& names) {
    return std::ranges::any_of(names, [](json::Value name) { return is_type(name, "schedule"); });
  }

  std::optional<std::string> look_at_dependents(json::Value schema, const std::string& place) {
    for (const char* const name : {"dependentRequired", "dependentSchemas", "dependencies"}) {
      const auto dependents = json::find(schema, name);
      if (!dependents || dependents->kind != json::Kind::object) continue;
      const auto each = json::members(*dependents);
      if (!each) continue;  // the check of the schema says what is wrong with it
      for (const auto& [property, needed] : *each) {
        std::string there = fmt::format("{}.{}.{}", place, name, property);
        if (needed.kind == json::Kind::array && has_schedule(json::elements(needed))) return there;
        if (auto found = look(needed, there)) return found;
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> look_behind(json::Value schema, const std::string& place) {
    const auto reference = json::find(schema, "$ref");
    if (!reference || reference->kind != json::Kind::string) return std::nullopt;
    const std::string name = json::text(*reference);
    if (!seen_.insert(name).second) return std::nullopt;
    const auto part = part_of(root_, name);
    return part ? look(*part, fmt::format("{}.$ref {}", place, name)) : std::nullopt;
  }

  json::Value root_;
  std::set<std::string> seen_;  // references, which may go in a circle
};

// Arguments are checked when `schedule` has been cut out: what needs it there would refuse every call.
Result<> check_without_schedule(json::Value schema, const CheckSchema& check_schema) {
  if (const auto place = ScheduleRequired(schema).look(schema, "inputSchema"))
    return wrong(fmt::format("{} names schedule, which is the caller's to choose; leave it out there", *place));
  if (const auto fits = check_schema(with_schedule(schema, "true")); !fits)
    return wrong("inputSchema: something refers to a part of schedule, which is cut out of the arguments: " +
                 fits.error().detail);
  return {};
}

// ---- the other fields

Result<> read_mode(const json::Fields& fields, bool& persistent) {
  std::string mode = "oneshot";
  BELFRY_CHECK(fields.text("mode", mode));
  if (mode != "oneshot" && mode != "persistent")
    return wrong(fmt::format("mode is \"{}\"; oneshot or persistent belongs there", mode.substr(0, 40)));
  persistent = mode == "persistent";
  return {};
}

Result<> read_provider(const json::Fields& fields, std::string& provider) {
  BELFRY_CHECK(fields.text("provider", provider));
  if (!fields.find("provider")) return {};
  if (provider.empty() || provider.size() > 64 || provider.find_first_not_of(kIdCharacters) != std::string::npos)
    return wrong("provider is no id; letters, digits and . _ - belong there, at most 64");
  return {};
}

Result<> read_command(const json::Fields& fields, std::vector<std::string>& command) {
  BELFRY_CHECK(fields.texts("command", kArgumentsMax, command));
  if (!fields.find("command")) command = {"handler"};
  if (command.empty() || command.front().empty())
    return wrong("command names no program; a list of strings belongs there, the program first");
  for (const std::string& argument : command)
    if (argument.contains('\0')) return wrong("command has a zero byte in it, which no program can be given");
  return {};
}

Result<> read_name(const json::Fields& fields, const fs::path& folder, std::string& name) {
  BELFRY_CHECK(fields.text("name", name));
  if (!fields.find("name")) return wrong("name is missing; it is the folder's name");
  BELFRY_CHECK(check_plugin_name(name));
  if (name != folder.filename().string())
    return wrong(fmt::format("name is \"{}\", but the folder is called \"{}\"; both must be the same", name,
                             folder.filename().string().substr(0, 100)));
  return {};
}

Result<> read_numbers(const json::Fields& fields, Plugin& plugin) {
  BELFRY_CHECK(read_millis(fields, "timeoutMs", 1, plugin.timeout));
  BELFRY_CHECK(read_millis(fields, "cooldownMs", 0, plugin.cooldown));
  BELFRY_CHECK(read_millis(fields, "idleMs", 0, plugin.idle_timeout));
  std::int64_t at_once = 1;
  BELFRY_CHECK(read_range(fields, "concurrency", 1, 100, at_once));
  if (fields.find("concurrency")) plugin.at_once = static_cast<int>(at_once);
  return {};
}

// Who may write to a program of its own, or to config.json, could lift its walls.
Result<> check_writes(const Plugin& plugin) {
  const fs::path writes = plugin.writes;
  if (!writes.has_filename() || writes.is_absolute() || writes.lexically_normal() != writes ||
      *writes.begin() == ".." || writes == "." || writes.string().contains('\0'))
    return wrong(
        fmt::format("writes is \"{}\"; the name of a folder inside the plugin's own belongs there, such as data",
                    plugin.writes.substr(0, 100)));
  for (const std::string& argument : plugin.command) {
    const fs::path inside = (plugin.folder / argument).lexically_relative(plugin.folder / writes);
    if (!inside.empty() && *inside.begin() != "..")
      return wrong(fmt::format("writes is \"{}\", and {} stands in there, which is run; programs must not",
                               plugin.writes, argument.substr(0, 100)));
  }
  return {};
}

Result<> read_walls(const json::Fields& fields, Plugin& plugin) {
  BELFRY_CHECK(fields.texts("reads", kReadsMax, plugin.reads));
  for (const std::string& path : plugin.reads)
    if (path.empty() || path.contains('\0'))
      return wrong("reads has a name in it that no file can have; paths, or $NAME of a variable in .env, belong there");
  BELFRY_CHECK(fields.text("writes", plugin.writes));
  if (fields.find("writes")) BELFRY_CHECK(check_writes(plugin));
  std::string network = "any";
  BELFRY_CHECK(fields.text("network", network));
  if (network != "any" && network != "none")
    return wrong(fmt::format("network is \"{}\"; any or none belongs there", network.substr(0, 40)));
  plugin.no_network = network == "none";
  return {};
}

// `$NAME` stands for what the plugin's .env says, as in PATH with : between them; nothing if that does not name it.
std::vector<std::string> resolved_reads(const Plugin& plugin) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view path) {
    if (!path.empty()) out.push_back((plugin.folder / path).lexically_normal().string());
  };
  for (const std::string& path : plugin.reads) {
    if (!path.starts_with('$')) {
      add(path);
      continue;
    }
    for (const auto& [name, value] : plugin.environment)
      if (name == path.substr(1))
        for (const auto part : std::views::split(value, ':')) add(std::string_view(part));
  }
  return out;
}

Result<Plugin> read_config(const fs::path& folder, const std::string& text, const CheckSchema& check_schema) {
  BELFRY_TRY(const json::Fields fields,
             json::Fields::read("a plugin", text, {"name",    "description", "inputSchema", "schedule",    "idempotent",
                                                   "mode",    "provider",    "timeoutMs",   "concurrency", "cooldownMs",
                                                   "idleMs",  "command",     "reads",       "writes",      "network",
                                                   "version", "author",      "homepage",    "title",       "tags"}));
  Plugin plugin{.folder = folder};
  BELFRY_CHECK(read_name(fields, folder, plugin.name));
  BELFRY_CHECK(fields.text("description", plugin.description));
  BELFRY_CHECK(fields.flag("idempotent", plugin.idempotent));
  BELFRY_CHECK(read_mode(fields, plugin.persistent));
  BELFRY_CHECK(read_provider(fields, plugin.provider));
  BELFRY_CHECK(read_numbers(fields, plugin));
  BELFRY_CHECK(read_command(fields, plugin.command));
  BELFRY_CHECK(read_walls(fields, plugin));
  bool flag = false;
  BELFRY_CHECK(fields.flag("schedule", flag));
  const auto declared = fields.find("schedule") ? std::optional(flag) : std::nullopt;
  const auto schema = fields.find("inputSchema").value_or(json::Value{json::Kind::object, R"({"type":"object"})"});
  BELFRY_TRY(const Parameters parameters, read_parameters(schema));
  BELFRY_CHECK(settle_schedule(parameters, declared, plugin));
  if (const auto fits = check_schema(plugin.parameters); !fits) return wrong("inputSchema: " + fits.error().detail);
  if (plugin.takes_schedule) BELFRY_CHECK(check_without_schedule(schema, check_schema));
  return plugin;
}

// ---- .env

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

char unescaped(char c) {
  switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;
  }
}

// What may stand behind a value in quotes.
bool is_remark(std::string_view rest) {
  rest = trimmed(rest);
  return rest.empty() || rest.front() == '#';
}

// `text` begins with a quote. Nothing if it does not end, or something stands behind.
std::optional<std::string> quoted_value(std::string_view text) {
  const char quote = text.front();
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) return is_remark(text.substr(i + 1)) ? std::optional(out) : std::nullopt;
    const bool escaped = quote == '"' && text[i] == '\\' && i + 1 < text.size();
    out += escaped ? unescaped(text[++i]) : text[i];
  }
  return std::nullopt;
}

std::optional<std::string> value_of(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('"') || text.starts_with('\'')) return quoted_value(text);
  if (text.starts_with('#')) return std::string();
  return std::string(trimmed(text.substr(0, std::min(text.find(" #"), text.find("\t#")))));
}

bool is_variable(std::string_view key) {
  return !key.empty() && kLetters.contains(key.front()) &&
         key.find_first_not_of(kWordCharacters) == std::string_view::npos;
}

Result<> read_line(std::string_view line, int number, Variables& into) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#') return {};
  if (line.starts_with("export ") || line.starts_with("export\t")) line = trimmed(line.substr(7));
  const auto equals = line.find('=');
  const std::string_view key = trimmed(line.substr(0, equals));
  if (equals == std::string_view::npos || !is_variable(key))
    return wrong(fmt::format("line {} is not of the form KEY=value", number));
  auto value = value_of(line.substr(equals + 1));
  if (!value) return wrong(fmt::format("line {}: the quotes do not close, or something stands behind them", number));
  if (value->contains('\0')) return wrong(fmt::format("line {} has a zero byte in it", number));
  std::erase_if(into, [&](const auto& one) { return one.first == key; });  // the last one counts
  if (into.size() == kVariablesMax) return wrong(fmt::format("there are more than {} variables", kVariablesMax));
  into.emplace_back(key, std::move(*value));
  return {};
}

// ---- files

struct Closing {
  explicit Closing(int descriptor) : fd(descriptor) {}
  ~Closing() {
    if (fd >= 0) ::close(fd);
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  int fd;
};

// Nothing if there is no such file. Does not wait for what is no file but a pipe.
Result<std::optional<std::string>> read_text(const fs::path& path) {
  const Closing file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0 && errno == ENOENT) return std::nullopt;
  struct stat about{};
  if (file.fd < 0 || ::fstat(file.fd, &about) != 0)
    return wrong(fmt::format("it cannot be read: {}", std::strerror(errno)));
  if (!S_ISREG(about.st_mode)) return wrong("it is no file");
  std::string text(kManifestBytesMax + 1, '\0');
  std::size_t size = 0;
  for (ssize_t count = 1; count > 0 && size < text.size();
       size += static_cast<std::size_t>(std::max<ssize_t>(count, 0))) {
    count = ::read(file.fd, text.data() + size, text.size() - size);
    if (count < 0) return wrong(fmt::format("it cannot be read: {}", std::strerror(errno)));
  }
  if (size > kManifestBytesMax) return wrong(fmt::format("it has more than {} bytes", kManifestBytesMax));
  text.resize(size);
  return text;
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

Result<std::string> find_program(const fs::path& folder, const std::string& program) {
  std::error_code ignored;
  const fs::path inside = folder / program;  // an absolute one stays as it is
  if (program.contains('/') || fs::exists(inside, ignored)) {
    if (!fs::exists(inside, ignored)) return wrong(fmt::format("there is no program {}", inside.string()));
    if (!is_program(inside)) return wrong(fmt::format("{} is not executable; chmod +x makes it so", inside.string()));
    return inside.string();
  }
  if (program == "handler")
    return wrong(
        fmt::format("there is no {}; a plugin has an executable file of that name, or a \"command\" in config.json",
                    inside.string()));
  for (const char* const place : kProgramFolders)
    if (const fs::path found = fs::path(place) / program; is_program(found)) return found.string();
  return wrong(
      fmt::format("command: there is no program {} in {}, /usr/local/bin, /usr/bin or /bin", program, folder.string()));
}

// What is run is what we run it as: whoever can change it could do everything that the server can. Of `command` also what
// an interpreter is given.
Result<> check_writers(const Plugin& plugin) {
  std::vector<fs::path> paths{plugin.folder, plugin.folder / "config.json"};
  for (const std::string& argument : plugin.command) paths.push_back(plugin.folder / argument);
  for (const fs::path& path : paths) {
    struct stat about{};
    // A folder of the plugin's may have the program in it (`python3 app`); another one, such as /tmp, is an argument.
    const bool own = *path.lexically_relative(plugin.folder).begin() != "..";
    const bool counts = ::stat(path.c_str(), &about) == 0 && (S_ISREG(about.st_mode) || own);
    if (counts && (about.st_mode & S_IWOTH))
      return wrong(fmt::format("anybody can write to {}, and it is run; chmod o-w it first", path.string()));
  }
  return {};
}

std::string edition_of_file(const struct stat& about) {
  return fmt::format("{}.{}.{}.{}", about.st_ino, about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
}

constexpr std::string_view kCodeEndings[] = {".py",  ".js", ".mjs", ".cjs", ".ts",    ".rb", ".pl",
                                             ".lua", ".sh", ".php", ".jar", ".class", ".so"};

// What a program consists of. What it leaves in its folder while it runs, such as a database, is no reason to begin anew.
bool is_code(const fs::path& path, const struct stat& about) {
  const bool known = std::ranges::find(kCodeEndings, path.extension().string()) != std::end(kCodeEndings);
  return S_ISREG(about.st_mode) && (known || (about.st_mode & S_IXUSR));
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// All programs in the folder, as a number. Links are not followed, and of a huge folder only a part counts.
std::size_t edition_of_folder(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code ec;
  int entries = 0;
  for (fs::recursive_directory_iterator at(folder, ec), end; !ec && at != end && entries < kEditionEntriesMax;
       at.increment(ec), ++entries) {
    struct stat about{};
    const bool counts = !is_hidden(at->path()) && ::lstat(at->path().c_str(), &about) == 0;
    if (!counts || !S_ISDIR(about.st_mode)) at.disable_recursion_pending();
    if (counts && is_code(at->path(), about))
      files.push_back(fmt::format("{} {}\n", at->path().lexically_relative(folder).string(), edition_of_file(about)));
  }
  std::sort(files.begin(), files.end());
  return std::hash<std::string>{}(fmt::format("{}", fmt::join(files, "")));
}

// Of what is run and stands in the folder: written anew, it is another plugin, and a process that stays must be replaced.
// Such a one has read its modules when it began, so for it all programs in the folder count.
std::string edition_of(const Plugin& plugin) {
  std::string edition;
  for (const std::string& argument : plugin.command) {
    const fs::path path = plugin.folder / argument;
    struct stat about{};
    if (argument.starts_with('-') || ::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    edition += edition_of_file(about) + ' ';
  }
  if (plugin.persistent) edition += fmt::format("{:x}", edition_of_folder(plugin.folder));
  return edition;
}

// Of folders only who may write to them: plugins leave files there.
std::string stamp_of_file(const fs::path& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return "- ";
  if (!S_ISREG(about.st_mode)) return fmt::format("{} ", about.st_mode);
  return fmt::format("{}.{}.{}.{} ", edition_of_file(about), about.st_mode, about.st_ctim.tv_sec,
                     about.st_ctim.tv_nsec);
}

std::unexpected<Error> in_file(const fs::path& file, const Error& error) {
  return fail(error.code, fmt::format("{}: {}", file.string(), error.detail));
}

}  // namespace

Result<> check_plugin_name(std::string_view name) {
  if (!name.empty() && name.size() <= kNameBytesMax &&
      name.find_first_not_of(kWordCharacters) == std::string_view::npos)
    return {};
  return wrong(fmt::format("\"{}\" is no name of a plugin; letters, digits and _ are, at most {}", name.substr(0, 100),
                           kNameBytesMax));
}

std::string without_comments(std::string_view text) {
  std::string out(text);
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && text.substr(i).starts_with("//")) {
      for (; i < text.size() && text[i] != '\n'; ++i) out[i] = ' ';
    } else if (!in_string && text.substr(i).starts_with("/*")) {
      const auto close = text.find("*/", i + 2);
      if (close == std::string_view::npos)
        return out;  // left as it is: it is no JSON, and that is said where it stands
      for (; i < close + 2; ++i)
        if (text[i] != '\n') out[i] = ' ';
      --i;
    }
  }
  return out;
}

Result<Variables> read_variables(std::string_view text) {
  Variables variables;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // some editors begin with this mark
  for (int number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    BELFRY_CHECK(read_line(text.substr(0, end), number, variables));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return variables;
}

Result<Plugin> read_manifest(const fs::path& folder, std::string_view text, std::string_view env_text,
                             const CheckSchema& check_schema) {
  if (text.size() > kManifestBytesMax)
    return in_file(folder / "config.json",
                   {Errc::too_large, fmt::format("it has more than {} bytes", kManifestBytesMax)});
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  auto plugin = read_config(folder, without_comments(text), check_schema);
  if (!plugin) return in_file(folder / "config.json", plugin.error());
  auto variables = read_variables(env_text);
  if (!variables) return in_file(folder / ".env", variables.error());
  plugin->environment = std::move(*variables);
  plugin->reads = resolved_reads(*plugin);
  return plugin;
}

std::string stamp_of(const Plugin& plugin) {
  std::string stamp;
  for (const char* const part : {"", "config.json", ".env"}) stamp += stamp_of_file(plugin.folder / part);
  // A program of that name may come to stand in the folder, too.
  stamp += stamp_of_file(plugin.folder / fs::path(plugin.command.front()).filename());
  for (const std::string& argument : plugin.command) stamp += stamp_of_file(plugin.folder / argument);
  if (plugin.persistent) stamp += fmt::format("{:x}", edition_of_folder(plugin.folder));
  return stamp;
}

Result<Plugin> read_plugin(const fs::path& folder, const CheckSchema& check_schema) {
  const auto config = read_text(folder / "config.json");
  if (!config) return in_file(folder / "config.json", config.error());
  if (!*config) return wrong(fmt::format("{}: there is no config.json in it", folder.string()));
  const auto env = read_text(folder / ".env");
  if (!env) return in_file(folder / ".env", env.error());
  BELFRY_TRY(Plugin plugin, read_manifest(folder, **config, env->value_or(""), check_schema));
  BELFRY_TRY(plugin.command.front(), find_program(folder, plugin.command.front()));
  BELFRY_CHECK(check_writers(plugin));
  plugin.edition = edition_of(plugin);
  return plugin;
}

}  // namespace belfry::plugin
