// The page at `/`: what runs here, what it holds, how to send. Plain HTML in two languages, nothing from elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "belfry/bus/message_bus.h"

namespace belfry::server {

enum class Language { english, chinese };

// The wish in ?lang= if there is one, else what the browser prefers.
Language choose_language(std::string_view query, std::string_view accept_language);

struct HomePage {
  struct Row {
    std::string name;
    bus::Counts counts;
  };
  bus::Totals totals;
  std::vector<Row> recipients;  // the first ones
  std::size_t recipients_in_all = 0;
  std::string address;  // as the browser wrote it
  bool stopping = false;
  bool needs_token = false;  // the examples then have the header for it
};

std::string home_page(const HomePage& page, Language language);
std::string_view home_style();
std::string_view home_icon();

}  // namespace belfry::server
