#include "belfry/net/signature.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace belfry::net {
namespace {

using namespace std::chrono_literals;

const WallTime kThen = wall_from_ms(1'772'366'400'250);
const Secret kSecret("a secret of some length");

// P13: by another program's reckoning (openssl dgst -sha256 -hmac).
TEST(Signature, IsWhatOthersReckonToo) {
  EXPECT_EQ(sign(kSecret, kThen, R"({"text":"hi"})"),
            "t=1772366400,v1=5104be4abb75e26656c448cb39659e65b15d235fa4ac19357770d1034456d376");
}

// P13
TEST(Signature, HoldsForItsBodyItsSecretAndItsTimeOnly) {
  const std::string header = sign(kSecret, kThen, "body");
  EXPECT_TRUE(verify(kSecret, header, "body", kThen));
  EXPECT_TRUE(verify(kSecret, header, "body", kThen + kSignatureAgeMax - 1s));
  EXPECT_TRUE(verify(kSecret, header, "body", kThen - kSignatureAgeMax));
  EXPECT_TRUE(verify(kSecret, header + ",v2=later", "body", kThen));
  EXPECT_FALSE(verify(kSecret, header, "body ", kThen));
  EXPECT_FALSE(verify(Secret("another secret of some length"), header, "body", kThen));
  EXPECT_FALSE(verify(kSecret, header, "body", kThen + kSignatureAgeMax + 1s));
  EXPECT_FALSE(verify(kSecret, header, "body", kThen - kSignatureAgeMax - 1s));
}

// P13: nobody's secret signs nothing, even for somebody who knows that it is empty.
TEST(Signature, AnEmptySecretIsNobodys) {
  EXPECT_EQ(verify(Secret(), sign(Secret(), kThen, "body"), "body", kThen).error().code, Errc::bad_signature);
}

TEST(Signature, AHeaderThatIsNoneIsRefused) {
  const std::string digest(64, 'a');
  for (const std::string& header : {std::string(), std::string("t=1"), "v1=" + digest, "t=x,v1=" + digest,
                                    "t=-1,v1=" + digest, "t=1,v1=" + digest + "a", "t=1,t=1,v1=" + digest,
                                    fmt::format("t=1,v1={},v1={}", digest, digest), "t=1,v1=" + std::string(64, 'A'),
                                    "t=99999999999999999999,v1=" + digest, "t=1;v1=" + digest, std::string(2'000, 'x')})
    EXPECT_EQ(parse_signature(header).error().code, Errc::bad_signature) << header;
  EXPECT_EQ(parse_signature("v1=" + digest + ",t=7")->seconds, 7);
}

// P13
RC_GTEST_PROP(SignatureProperty, AChangedByteIsNoticed, ()) {
  const auto body = *rc::gen::nonEmpty(rc::gen::arbitrary<std::string>());
  const std::string header = sign(kSecret, kThen, body);
  RC_ASSERT(verify(kSecret, header, body, kThen).has_value());
  std::string changed = body;
  const auto at = *rc::gen::inRange<std::size_t>(0, body.size());
  changed[at] = static_cast<char>(changed[at] ^ *rc::gen::inRange(1, 256));
  RC_ASSERT(!verify(kSecret, header, changed, kThen).has_value());
}

}  // namespace
}  // namespace belfry::net
