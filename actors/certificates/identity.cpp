// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/certificates/identity.hpp>

#include <string_view>
#include <vector>

#include <troupe/actors/certificates/openssl.hpp>
#include <troupe/actors/settings.hpp>

namespace troupe::certificates {

namespace {

constexpr std::string_view of_node = "troupe:";
constexpr std::string_view of_role = "troupe-role:";

std::vector<std::string> uris_in(X509* certificate) {
  std::vector<std::string> result;
  const owned<GENERAL_NAMES> names(
    static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  take_problem();
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* each = sk_GENERAL_NAME_value(names.get(), i);
    if (each->type != GEN_URI) continue;
    const auto* text = each->d.uniformResourceIdentifier;
    result.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                        static_cast<std::size_t>(ASN1_STRING_length(text)));
  }
  return result;
}

}  // namespace

std::string uri_of_node(const identity& who) { return std::string(of_node) + who.cluster + "/" + who.node; }
std::string uri_of_role(const identity& who) { return std::string(of_role) + who.role; }

std::optional<identity> identity_of(x509_st* certificate) {
  if (certificate == nullptr) return std::nullopt;
  identity result;
  int nodes = 0;
  int roles = 0;
  for (const auto& each : uris_in(certificate)) {
    if (each.starts_with(of_node)) {
      const auto slash = each.find('/');
      if (++nodes > 1 || slash == std::string::npos) return std::nullopt;
      result.cluster = each.substr(of_node.size(), slash - of_node.size());
      result.node = each.substr(slash + 1);
    } else if (each.starts_with(of_role)) {
      if (++roles > 1) return std::nullopt;
      result.role = each.substr(of_role.size());
    }
  }
  const bool fine = valid_node_name(result.cluster) && valid_node_name(result.node) && valid_node_name(result.role);
  return fine ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace troupe::certificates
