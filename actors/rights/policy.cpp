// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/rights/policy.hpp>

#include <utility>

#include <troupe/actors/settings.hpp>
#include <troupe/actors/support/strict_json.hpp>

namespace troupe::rights {

namespace {

using nlohmann::json;
using support::fail_at;
using support::shown;

constexpr const char* all_names = "*";
constexpr const char* example = R"({"roles": {"trainer": {"call": ["forward"]}}})";

name_list read_names(const json& object, const std::string& where, const std::string& field) {
  name_list result;
  for (auto& name : support::read_texts(object, where, field)) {
    if (name.empty()) fail_at(where + "." + field, "expected names, or \"*\" for all, got an empty text");
    name == all_names ? void(result.has_all = true) : void(result.names.insert(std::move(name)));
  }
  return result;
}

bool read_flag(const json& object, const std::string& where, const char* field) {
  const auto found = object.find(field);
  if (found == object.end()) return false;
  if (!found->is_boolean()) fail_at(where + "." + field, "expected true or false, got " + shown(*found));
  return found->get<bool>();
}

/// The index of the field's value in `words`; 0 if the field is not there.
std::size_t read_word(const json& object, const std::string& where, const char* field, const std::vector<std::string>& words) {
  const auto found = object.find(field);
  if (found == object.end()) return 0;
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (*found == words[i]) return i;
    list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + ("\"" + words[i] + "\"");
  }
  fail_at(where + "." + field, "expected " + list + ", got " + shown(*found));
}

std::map<std::string, name_list> read_modules(const json& object, const std::string& where) {
  std::map<std::string, name_list> result;
  const auto found = object.find("modules");
  if (found == object.end()) return result;
  if (!found->is_object())
    fail_at(where + ".modules",
            R"(expected types of modules and their methods, as in {"Stage": ["forward"]}, got )" + shown(*found));
  for (const auto& [type, methods] : found->items()) result[type] = read_names(*found, where + ".modules", type);
  return result;
}

role_rights read_role(const json& object, const std::string& where) {
  if (!object.is_object()) fail_at(where, R"(expected an object such as {"call": ["forward"]}, got )" + shown(object));
  support::check_fields(object, where,
                        {"call", "modules", "weights", "save", "scripts", "actors", "contexts", "trace", "status", "members"});
  role_rights result;
  result.call = read_names(object, where, "call");
  result.modules = read_modules(object, where);
  result.of_weights = static_cast<role_rights::weights>(read_word(object, where, "weights", {"none", "read", "write"}));
  result.all_contexts = read_word(object, where, "contexts", {"own", "all"}) == 1;
  result.save = read_flag(object, where, "save");
  result.scripts = read_flag(object, where, "scripts");
  result.actors = read_flag(object, where, "actors");
  result.trace = read_flag(object, where, "trace");
  result.status = read_flag(object, where, "status");
  result.members = read_flag(object, where, "members");
  return result;
}

}  // namespace

const name_list* role_rights::methods_of(const std::string& type) const {
  auto found = modules.find(type);
  if (found == modules.end()) found = modules.find(all_names);
  return found == modules.end() ? nullptr : &found->second;
}

bool role_rights::may_call(const std::string& type, const std::string& method) const {
  const auto* methods = methods_of(type);
  return methods != nullptr && methods->has(method);
}

std::string policy::text_of(const std::string& path) {
  return support::read_small_file(path, std::string("a policy such as ") + example);
}

policy policy::parse(const std::string& text, const std::string& origin) {
  const auto document = support::parse_strictly(text, origin);
  if (!document.is_object()) fail_at(origin, std::string("expected a policy such as ") + example + ", got " + shown(document));
  support::check_fields(document, origin, {"roles"});
  const auto roles = document.find("roles");
  if (roles == document.end() || !roles->is_object() || roles->empty())
    fail_at(origin, std::string("the field \"roles\" names no role; expected a policy such as ") + example);
  policy result;
  for (const auto& [name, rights] : roles->items()) {
    const auto where = origin + ": roles." + name;
    if (!valid_node_name(name))
      fail_at(where, "expected a role of 1 to 64 letters, digits, '.', '_' or '-', not beginning with a dot");
    result.roles_[name] = read_role(rights, where);
  }
  return result;
}

const role_rights& policy::of(const std::string& role) const {
  static const role_rights none;
  const auto found = roles_.find(role);
  return found == roles_.end() ? none : found->second;
}

std::vector<std::string> policy::roles_that_save() const {
  std::vector<std::string> result;
  for (const auto& [name, rights] : roles_)
    if (rights.save) result.push_back(name);
  return result;
}

bool policy_file::read_again() {
  const checked_lock lock(mutex_);
  auto text = policy::text_of(path_);
  auto known = read_.find(text);
  if (known == read_.end()) {
    auto made = policy::parse(text, path_);
    known = read_.emplace(std::move(text), std::move(made)).first;
  }
  return now_.exchange(&known->second, std::memory_order_acq_rel) != &known->second;
}

}  // namespace troupe::rights
