#include "belfry/server/panel.h"
#include "belfry/server/routes.h"

namespace belfry::server {
namespace {

// Nothing from elsewhere, no script in the page itself, and nobody frames it. Pictures of tools are fetched with the token,
// so the page shows them as blobs.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:;"
    " manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

Response answer(const PanelFile& file, const Request& request) {
  Response response;
  response.content_type = file.content_type;
  response.cache_control = "no-cache";
  response.headers.push_back({"ETag", file.tag});
  response.headers.push_back({"Vary", "Accept-Encoding"});
  response.headers.push_back({"Content-Security-Policy", std::string(kPolicy)});
  response.headers.push_back({"Referrer-Policy", "no-referrer"});
  if (request.if_none_match == file.tag) {
    response.status = 304;
    return response;
  }
  const bool compressed = !file.compressed.empty() && request.accept_encoding.find("gzip") != std::string::npos;
  if (compressed) response.headers.push_back({"Content-Encoding", "gzip"});
  response.body = compressed ? file.compressed : file.bytes;
  return response;
}

// `file` is one of the routes' own, which outlive every request.
Task<Response> serve(const PanelFile& file, Request request) { co_return answer(file, request); }

}  // namespace

// The panel holds no secrets: a browser gets it without a token, and the page asks for one.
void PanelRoutes::add_to(Router& router) {
  for (const PanelFile& file : files_)
    router.add_public(Method::get, file.path, [&file](Request request) { return serve(file, std::move(request)); });
}

}  // namespace belfry::server
