// The parts of Asio that the kernel uses, under one short name. Included by .cpp files and by headers that declare
// coroutines; Beast is not here.
#pragma once

#include <functional>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace belfry {

namespace asio = boost::asio;

template <class T>
using Task = asio::awaitable<T>;

// Resumes one suspended coroutine with a value, on the thread that calls it. Destroyed uncalled, it ends the coroutine.
template <class T>
using Resume = std::move_only_function<void(T)>;

// Suspends the caller and hands `start` the means to resume it.
//   const auto stored = co_await suspend<Result<>>([&](Resume<Result<>> resume) { queue.push(std::move(resume)); });
template <class T, class Start>
Task<T> suspend(Start start) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(T)>(
      [start = std::move(start)](auto handler) mutable { start(Resume<T>(std::move(handler))); }, asio::use_awaitable);
}

}  // namespace belfry
