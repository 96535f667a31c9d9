// How fast the engine alone is, without Python: bench_alfworld GAME_FILE... [--steps N]
//
// One thread, one env per game in turn; a step is a random admissible command, the observation's text and the list of
// admissible commands, whose texts are made as well. Prints a table and ends with one JSON line.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "envs/alfworld/env.h"

namespace {

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

int Run(int argc, char** argv) {
  using embodied_mem::alfworld::Command;
  using embodied_mem::alfworld::CommandText;
  using embodied_mem::alfworld::Env;
  using embodied_mem::alfworld::Game;
  using embodied_mem::alfworld::Wording;
  std::size_t num_steps = 200000;
  std::vector<std::shared_ptr<const Game>> games;
  std::vector<double> load_ms;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--steps" && i + 1 < argc) {
      num_steps = std::strtoul(argv[++i], nullptr, 10);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    games.push_back(Game::Load(argv[i]));
    load_ms.push_back(1e3 * Seconds(start));
  }
  if (games.empty() || num_steps == 0) {
    std::cerr << "usage: bench_alfworld GAME_FILE... [--steps N]\n";
    return 2;
  }
  std::sort(load_ms.begin(), load_ms.end());
  std::mt19937_64 rng(0);
  std::vector<Command> commands;
  std::size_t done = 0, bytes = 0;
  const auto start = std::chrono::steady_clock::now();
  while (done < num_steps) {
    Env env;
    env.Reset(games[rng() % games.size()], Wording::k04);
    for (int step = 0; step < 50 && done < num_steps; ++step, ++done) {
      env.FillExtra(&commands);
      for (const Command& command : commands) bytes += CommandText(*env.task(), Wording::k04, command).size();
      env.Step(CommandText(*env.task(), Wording::k04, commands[rng() % commands.size()]));
      bytes += env.observation().size();
    }
  }
  const double seconds = Seconds(start);
  const double rate = static_cast<double>(done) / seconds, p50 = load_ms[load_ms.size() / 2];
  std::printf("%-28s %12zu\n%-28s %12.3f\n%-28s %12.0f\n%-28s %12zu\n", "games", games.size(), "load, median [ms]", p50,
              "steps/s, one thread", rate, "text made [bytes/step]", bytes / done);
  std::printf("{\"suite\": \"alfworld_native\", \"games\": %zu, \"load_ms_p50\": %.4f, \"steps_per_s\": %.1f}\n",
              games.size(), p50, rate);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
