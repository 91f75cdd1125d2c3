// Who may talk to this server: checked on the head of a request, before its body is looked at (G19).
//
// A web page of another site can make a browser send requests to 127.0.0.1, and by DNS rebinding even under a name of its
// own. It cannot forge Host and Origin: both must name this server. Nor can it forge what a browser says about who asks
// (Sec-Fetch-Site): a page of another site may lead people here, and nothing else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/base/result.h"
#include "belfry/server/http_message.h"

namespace belfry::server {

class Guard {
 public:
  struct Options {
    std::string listen_host;  // as given: an address, [::1] in brackets, or a name
    int port = 0;
    std::vector<std::string> allow_hosts;  // more names, with or without a port
    std::string token;                     // empty: none is asked for
  };
  explicit Guard(const Options& options);

  Result<> check(const Request& request) const;
  // Without the token: for requests that prove by a signature who sent them, or need not.
  Result<> check_place(const Request& request) const;
  // The token alone, as somebody wrote it.
  Result<> check_token(std::string_view token) const;
  bool needs_token() const { return !token_.empty(); }
  // The token that is needed was shown.
  bool has_token(const Request& request) const {
    return needs_token() && check_authorization(request.authorization).has_value();
  }

 private:
  Result<> check_host(std::string_view host) const;
  Result<> check_origin(std::string_view origin) const;
  bool knows(std::string_view host) const;
  bool allows(std::string_view host) const;
  Result<> check_authorization(std::string_view authorization) const;

  std::vector<std::string> own_;      // lower case, with the port
  std::vector<std::string> allowed_;  // by hand: lower case, with a port or without one
  int port_;
  std::string token_;
};

// As long for a wrong text as for the right one, wherever they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace belfry::server
