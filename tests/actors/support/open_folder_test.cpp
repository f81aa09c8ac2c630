// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/actors/support/open_folder.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <actors/temporary_folder.hpp>
#include <troupe/actors/support/durable_file.hpp>
#include <troupe/actors/support/refused_request.hpp>

using namespace troupe;
using namespace troupe::test;
using support::file_location;
using support::open_folder;

namespace fs = std::filesystem;

namespace {

/// A folder that is open, and a folder outside of it with a file.
struct two_folders {
  temporary_folder all;
  std::string inside = all / "inside";
  std::string outside = all / "outside";
  std::optional<open_folder> opened;

  two_folders() {
    fs::create_directory(inside);
    fs::create_directory(outside);
    write_text(outside + "/secret", "secret");
    opened.emplace(inside, "");
  }
  ~two_folders() {
    BOOST_TEST(read_text(outside + "/secret") == "secret");
    BOOST_TEST(std::distance(fs::directory_iterator(outside), {}) == 1);
  }
  file_location location(const std::string& name) const { return {*opened, name}; }
};

void write(const file_location& location, const std::string& text) {
  support::durable_file file(location);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(open_folders, two_folders)

BOOST_AUTO_TEST_CASE(folders_and_files_are_made_found_and_removed) {
  BOOST_TEST(!opened->find("a"));
  const auto b = opened->find_or_make("a").find_or_make("b");
  BOOST_TEST(b.text() == "a/b");
  write({b, "file"}, "text");
  BOOST_TEST(read_text(inside + "/a/b/file") == "text");
  BOOST_TEST(support::file_digest::of({*opened->find_or_make("a").find("b"), "file"}).bytes == 4u);
  BOOST_TEST((b.names() == std::vector<std::string>{"file"}));
  BOOST_TEST((b.names() == std::vector<std::string>{"file"}));  // a second time from the beginning
  b.remove("file");
  BOOST_TEST(b.names().empty());
  BOOST_TEST(b.free_space().value() > 0u);
}

BOOST_AUTO_TEST_CASE(no_link_to_a_folder_is_followed) {  // OF-1
  fs::create_directory(inside + "/real");
  fs::create_directory_symlink(outside, inside + "/out");
  fs::create_directory_symlink(all / "nothing", inside + "/dangling");
  fs::create_directory_symlink(inside + "/real", inside + "/in");
  for (const std::string name : {"out", "dangling", "in"}) {
    for (const bool make : {false, true}) {
      const auto text = text_of<support::refused_request>([&] { make ? opened->find_or_make(name) : *opened->find(name); });
      BOOST_TEST(text == "'" + name + "' is a symbolic link, and links are not followed; name a path without links");
    }
  }
  BOOST_TEST(!fs::exists(all / "nothing"));
}

BOOST_AUTO_TEST_CASE(no_link_in_the_place_of_a_file_is_read) {  // OF-1
  fs::create_symlink(outside + "/secret", inside + "/out");
  fs::create_symlink("nothing", inside + "/dangling");
  for (const std::string name : {"out", "dangling"}) {
    BOOST_TEST(
      contains(text_of<support::refused_request>([&] { location(name).read(); }), "'" + name + "' is a symbolic link"));
    BOOST_TEST(opened->is_link(name));
  }
  BOOST_TEST(!opened->is_link("none"));
}

BOOST_AUTO_TEST_CASE(no_link_in_the_place_of_a_file_is_written_to) {  // OF-1, OF-2
  for (const std::string name : {"file", "file.part"}) fs::create_symlink(outside + "/secret", inside + "/" + name);
  fs::create_symlink(outside + "/new", inside + "/other.part");
  write(location("file"), "mine");
  write(location("other"), "mine");
  BOOST_TEST(read_text(inside + "/file") == "mine");
  BOOST_TEST(!fs::is_symlink(inside + "/file"));
  BOOST_TEST(!fs::is_symlink(inside + "/other"));
  fs::create_symlink(outside + "/secret", inside + "/link");
  opened->remove("link");
  BOOST_TEST(!fs::is_symlink(inside + "/link"));
}

BOOST_AUTO_TEST_CASE(no_hard_link_to_a_file_outside_is_written_to) {  // OF-2
  fs::create_hard_link(outside + "/secret", inside + "/file.part");
  fs::create_hard_link(outside + "/secret", inside + "/file");
  write(location("file"), "mine");
  BOOST_TEST(read_text(inside + "/file") == "mine");
}

BOOST_AUTO_TEST_CASE(only_regular_files_are_read_and_nothing_waits) {  // OF-2
  BOOST_REQUIRE(::mkfifo((inside + "/pipe").c_str(), 0600) == 0);
  fs::create_directory(inside + "/folder");
  BOOST_TEST(contains(text_of<error>([&] { location("pipe").read(); }), "can't read 'pipe': Invalid argument"));
  BOOST_TEST(contains(text_of<error>([&] { location("folder").read(); }), "can't read 'folder': Is a directory"));
  BOOST_TEST(contains(text_of<error>([&] { location("none").read(); }), "can't read 'none': No such file or directory"));
  write(location("pipe"), "no reader is waited for");
  BOOST_TEST(contains(text_of<error>([&] { write(location("folder"), ""); }), "Is a directory"));
  write_text(inside + "/file", "");
  BOOST_TEST(contains(text_of<error>([&] { opened->find("file"); }), "can't open the folder 'file': Not a directory"));
}

BOOST_AUTO_TEST_CASE(a_name_that_is_not_plain_reaches_nothing) {  // OF-1
  fs::create_directory(inside + "/folder");
  write_text(inside + "/folder/file", "kept");
  for (const auto& name : {std::string("../outside/secret"), std::string("folder/file"), std::string(".."), std::string("."),
                           std::string(), std::string("folder/file\0", 12), std::string("\0", 1), outside + "/secret"}) {
    BOOST_TEST(!opened->read(name));
    BOOST_TEST(errno == EINVAL);
    BOOST_TEST(!opened->create(name));
    BOOST_TEST(!opened->rename("folder", name));
    BOOST_TEST(!opened->rename(name, "x"));
    BOOST_TEST(!opened->is_link(name));
    opened->remove(name);
    BOOST_CHECK_THROW(opened->find(name), error);
    BOOST_CHECK_THROW(opened->find_or_make(name), error);
  }
  BOOST_TEST(read_text(inside + "/folder/file") == "kept");
}

BOOST_AUTO_TEST_CASE(a_link_put_in_the_place_of_an_open_folder_changes_nothing) {  // OF-1
  const auto run = opened->find_or_make("run");
  fs::rename(inside + "/run", inside + "/moved");
  fs::create_directory_symlink(outside, inside + "/run");
  write({run, "file"}, "text");
  run.remove("secret");
  BOOST_TEST(read_text(inside + "/moved/file") == "text");
}

// A thread puts a folder and a link to the folder outside in turns at the same name, as fast as it can.
BOOST_AUTO_TEST_CASE(a_link_that_comes_and_goes_is_never_followed) {  // OF-1
  fs::create_directory(inside + "/folder");
  fs::create_directory_symlink(outside, inside + "/link");
  std::atomic<bool> over{false};
  std::thread swaps([&] {
    const auto run = inside + "/run";
    while (!over) {
      fs::rename(inside + "/folder", run);
      fs::rename(run, inside + "/folder");
      fs::rename(inside + "/link", run);
      fs::rename(run, inside + "/link");
    }
  });
  int written = 0;
  int refused = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while ((written < 200 || refused < 200) && std::chrono::steady_clock::now() < until) {
    try {
      const auto run = opened->find("run");
      if (!run) continue;
      if (run->create("file")) ++written;
      run->remove("secret");
    } catch (const error&) {
      ++refused;
    }
  }
  over = true;
  swaps.join();
  BOOST_TEST(written >= 200);
  BOOST_TEST(refused >= 200);
}

BOOST_AUTO_TEST_CASE(an_error_holds_the_path_that_was_sent_and_no_more) {  // OF-3
  const auto folder = opened->find_or_make("a");
  for (const auto& text : {text_of<error>([&] { file_location(folder, "none").read(); }), text_of<error>([&] {
                             write({folder, std::string(300, 'x')}, "");
                           })}) {
    BOOST_TEST(contains(text, "'a/"));
    BOOST_TEST(!contains(text, all.path()), text);
  }
}

BOOST_AUTO_TEST_CASE(a_path_of_the_process_itself_follows_links) {
  fs::create_directory_symlink(inside, all / "link");
  write(all / "link/file", "text");
  BOOST_TEST(read_text(inside + "/file") == "text");
  BOOST_TEST(open_folder(all / "link", "x").names().size() == 1u);
  BOOST_TEST(
    contains(text_of<error>([&] { open_folder(all / "none", "the text"); }), "can't open the folder 'the text': No such file"));
}

BOOST_AUTO_TEST_SUITE_END()
