// The TLS part of Asio's own implementation, compiled once (BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/ssl/impl/src.hpp>
