// SPDX-License-Identifier: BSD-3-Clause
#include "apps/charlm/run_end.hpp"

#include <boost/test/unit_test.hpp>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <string>

#include "apps/charlm/advice.hpp"
#include "support/forked_child.hpp"
#include "support/temporary_folder.hpp"

using namespace troupe::apps;
using namespace troupe::apps::charlm;
using namespace troupe::apps::test;

BOOST_AUTO_TEST_SUITE(end_of_a_run)

BOOST_AUTO_TEST_CASE(a_person_is_told_of_a_stop_once_with_the_checkpoint_and_the_command_that_goes_on) {  // RE-1
  const temporary_folder folder;
  train_options options;
  options.out = folder.path() / "run";
  const run_folder run{options.out};
  const stop_signal stop;
  run_end end{options, stop, run};
  BOOST_TEST(end.saved_text().empty());
  end.saved(20);
  BOOST_TEST(end.is_saved(20));
  std::ostringstream out;
  progress shown{out, false};
  end.tell_stop(shown, 23);
  end.tell_stop(shown, 24);
  BOOST_TEST(out.str() == "stopped by a signal at step 23; the checkpoint of step 20 in " + run.checkpoint() +
                            " is whole, continue with: " + continue_command(options) + "\n");
  end.trained();
  BOOST_TEST(end.saved_text().ends_with("is whole, text from it: " + generate_command(options)));
}

BOOST_AUTO_TEST_CASE(a_process_that_does_not_stop_in_time_tells_leaves_the_folder_free_and_ends) {  // RE-1, RE-2
  const temporary_folder folder;
  train_options options;
  options.out = folder.path() / "run";
  std::array<int, 2> ends{};
  BOOST_REQUIRE(pipe(ends.data()) == 0);
  const int status = troupe::test::status_of_child([&] {
    dup2(ends[1], STDOUT_FILENO);
    const run_folder run{options.out};
    folder.write("run/loss.svg.part", "half");
    stop_signal stop;
    run_end end{options, stop, run};
    end.saved(20);
    stop.request();
    poll(nullptr, 0, 20'000);  // the process ends during this call
    return 1;
  });
  close(ends[1]);
  BOOST_TEST(status == 128 + SIGTERM);
  std::string told(4096, '\0');
  told.resize(static_cast<std::size_t>(read(ends[0], told.data(), told.size())));
  close(ends[0]);
  BOOST_TEST(told.starts_with("stopped by a signal; the checkpoint of step 20"), told);
  BOOST_TEST(told.ends_with("continue with: " + continue_command(options) + "\n"), told);
  BOOST_TEST(!std::filesystem::exists(folder.path() / "run" / ".lock"));
  BOOST_TEST(!std::filesystem::exists(folder.path() / "run" / "loss.svg.part"));
}

BOOST_AUTO_TEST_SUITE_END()
