#include "belfry/app/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <mutex>
#include <utility>

#include "belfry/base/utf8.h"

namespace belfry::app {
namespace {

constexpr int kHistoryMax = 500;

// As many bytes as the first one of a character announces; 1 for what is none.
int bytes_announced(unsigned char first) {
  if (first >= 0xF0) return 4;
  if (first >= 0xE0) return 3;
  return first >= 0xC0 ? 2 : 1;
}

}  // namespace

// The library asks for one character at a time through read_character(), which waits for the keyboard and for what others
// have to say: so the terminal belongs to one thread while a line is typed.
struct LineEditor::Impl {
  explicit Impl(std::string text) : prompt(std::move(text)), news(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    std::setlocale(LC_CTYPE, "C.UTF-8");  // whatever the environment says: everything here is UTF-8
    editor = ::el_init("belfry", stdin, stdout, stderr);
    past = ::history_init();
    ::el_set(editor, EL_CLIENTDATA, this);
    ::el_set(editor, EL_PROMPT, &Impl::write_prompt);
    ::el_set(editor, EL_EDITOR, "emacs");
    ::el_set(editor, EL_SIGNAL, 1);
    ::el_set(editor, EL_GETCFN, &Impl::read_character);
    HistEvent event;
    ::history(past, &event, H_SETSIZE, kHistoryMax);
    ::history(past, &event, H_SETUNIQUE, 1);
    ::el_set(editor, EL_HIST, &::history, past);
  }
  ~Impl() {
    ::el_end(editor);
    ::history_end(past);
    ::close(news);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static Impl& of(EditLine* editor) {
    void* data = nullptr;
    ::el_get(editor, EL_CLIENTDATA, &data);
    return *static_cast<Impl*>(data);
  }
  static char* write_prompt(EditLine* editor) { return of(editor).prompt.data(); }
  static int read_character(EditLine* editor, wchar_t* character) { return of(editor).next(*character); }

  int next(wchar_t& character) {
    while (true) {
      pollfd watched[] = {{.fd = 0, .events = POLLIN, .revents = 0}, {.fd = news, .events = POLLIN, .revents = 0}};
      if (::poll(watched, 2, -1) < 0) {
        if (errno == EINTR) continue;
        return -1;
      }
      if ((watched[1].revents & POLLIN) != 0) print_above();
      if (watched[0].revents == 0) continue;
      return read_utf8(character);
    }
  }

  static int read_utf8(wchar_t& character) {
    char bytes[4];
    int size = 0;
    int wanted = 1;
    while (size < wanted) {
      const ssize_t got = ::read(0, bytes + size, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return static_cast<int>(got);
      if (++size == 1) wanted = bytes_announced(static_cast<unsigned char>(bytes[0]));
    }
    char32_t point = 0;
    const bool is_character = utf8_sequence({bytes, static_cast<std::size_t>(size)}, &point) == size;
    character = static_cast<wchar_t>(is_character ? point : U'\uFFFD');
    return 1;
  }

  void print_above() {
    std::uint64_t count = 0;
    if (::read(news, &count, sizeof count) < 0) return;
    std::string texts;
    {
      const std::scoped_lock lock(mutex);
      texts = std::exchange(waiting, {});
      if (texts.empty() && !next_prompt) return;
      if (next_prompt) prompt = *std::exchange(next_prompt, std::nullopt);
    }
    std::fputs("\r\033[J", stdout);
    std::fputs(texts.c_str(), stdout);
    std::fflush(stdout);
    ::el_set(editor, EL_REFRESH);
  }

  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(news, &one, sizeof one);
  }

  std::string prompt;
  int news;
  EditLine* editor = nullptr;
  History* past = nullptr;
  std::mutex mutex;
  std::string waiting;  // to be printed
  std::optional<std::string> next_prompt;
  bool reading = false;  // a line is being typed: the terminal is not ours
};

LineEditor::LineEditor(std::string prompt) : impl_(std::make_unique<Impl>(std::move(prompt))) {}
LineEditor::~LineEditor() = default;

std::optional<std::string> LineEditor::read_line() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->reading = true;
  }
  int count = 0;
  const char* const typed = ::el_gets(impl_->editor, &count);
  const std::scoped_lock lock(impl_->mutex);
  impl_->reading = false;
  std::fputs(std::exchange(impl_->waiting, {}).c_str(), stdout);
  std::fflush(stdout);
  if (!typed || count <= 0) return std::nullopt;
  std::string line(typed, static_cast<std::size_t>(count));
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  HistEvent event;
  if (!line.empty()) ::history(impl_->past, &event, H_ENTER, line.c_str());
  return line;
}

void LineEditor::print(std::string text) {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->reading) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return;
  }
  impl_->waiting += text;
  impl_->ring();
}

void LineEditor::set_prompt(std::string prompt) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->next_prompt = std::move(prompt);
  impl_->ring();
}

}  // namespace belfry::app
