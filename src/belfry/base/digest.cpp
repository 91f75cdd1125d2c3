#include "belfry/base/digest.h"

#include <openssl/sha.h>

#include <cstring>

namespace belfry {

Digest digest(std::string_view bytes) {
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  Digest result;
  std::memcpy(&result.high, hash, sizeof result.high);
  std::memcpy(&result.low, hash + sizeof result.high, sizeof result.low);
  return result;
}

}  // namespace belfry
