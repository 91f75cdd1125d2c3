// Those who hold something that is scarce, in the order in which they were last heard: when there is no room for all, the
// one that has been silent for longest is let go.
//
// There are two crowds. Strangers are whoever has proved nothing: no token where one is needed, no hello, no signature
// (G23). Laggards do not read what they are sent (G16).
//
// Lives on the kernel's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>

namespace belfry::server {

class Crowd {
 public:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  explicit Crowd(std::size_t bytes_max = kNoLimit) : bytes_max_(bytes_max) {}

  // One place in a crowd; leaves it when it is destroyed.
  class Member {
   public:
    // `let_go` is called when there is no room for it any more, and is to give back what it holds. It has left the crowd
    // by then.
    explicit Member(std::function<void()> let_go) : let_go_(std::move(let_go)) {}
    ~Member() { leave(); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    bool is_in() const { return crowd_ != nullptr; }
    void leave();
    // `bytes` came from it, or went to it. Only whoever brings something along is heard: a byte now and then is silence.
    void heard(std::size_t bytes);
    // What it holds now, in all. Others may be let go for that, or itself.
    void hold(std::size_t bytes);

   private:
    friend class Crowd;
    std::function<void()> let_go_;
    Crowd* crowd_ = nullptr;
    std::list<Member*>::iterator place_;
    std::size_t held_ = 0;
    std::size_t unheard_ = 0;
  };

  // As the one that was heard last. Nothing happens to one that is in already.
  void enter(Member& member);
  // What several of them hold together, beside what each holds alone.
  void hold_in_common(std::size_t bytes);
  void drop_in_common(std::size_t bytes) { bytes_ -= bytes; }
  // Lets go of the one that has been silent for longest; false if nobody is there.
  bool let_one_go();

  // Not more than half of what there may be: who comes now need not fear to be let go soon.
  bool is_roomy() const { return bytes_ <= bytes_max_ / 2; }
  std::size_t size() const { return members_.size(); }
  std::size_t bytes() const { return bytes_; }
  std::uint64_t let_go() const { return let_go_; }  // since the start

 private:
  void make_room();

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::uint64_t let_go_ = 0;
  std::list<Member*> members_;  // whoever has been silent for longest first
};

}  // namespace belfry::server
