#include "belfry/app/bench/when_bench.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "belfry/base/json.h"

namespace belfry::app::bench {
namespace {

constexpr double kSeconds = 3;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

void run_when_bench(const std::vector<std::string>& texts, const std::string& language) {
  const when::Zone zone = when::Zone::named("Asia/Shanghai").value();
  const when::Reference reference{.now = parse_iso("2026-11-18T15:20:00+08:00").value(),
                                  .zone = zone,
                                  .language = when::parse_language(language).value()};
  long read = 0;
  long steps = 0;
  long most_steps_per_byte = 0;
  const auto once = [&] {
    for (const std::string& text : texts) {
      long here = 0;
      read += when::read_counting(text, reference, here) ? 1 : 0;
      steps += here;
      most_steps_per_byte = std::max(most_steps_per_byte, here / static_cast<long>(text.size()));
    }
  };
  once();
  const long read_of_all = read;
  const double begun = cpu_seconds();
  int rounds = 0;
  while (cpu_seconds() - begun < kSeconds) {
    once();
    ++rounds;
  }
  const double taken = static_cast<double>(rounds) * static_cast<double>(texts.size());
  json::Writer writer;
  writer.object()
      .field("bench", "when")
      .field("reader", "belfry")
      .field("language", language)
      .field("texts", texts.size())
      .field("read", read_of_all)
      .field("perCpuSecond", static_cast<std::int64_t>(taken / (cpu_seconds() - begun)))
      .field("stepsPerText", steps / static_cast<long>(texts.size() * static_cast<std::size_t>(rounds + 1)))
      .field("mostStepsPerByte", most_steps_per_byte)
      .end();
  std::printf("%s\n", writer.take().c_str());
}

}  // namespace belfry::app::bench
