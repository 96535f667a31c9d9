// Plays a Game: one command in, the original's text, score and admissible commands out.
//
// An Env is a value: copying it is its snapshot. It owns its state and shares the Game. One thread at a time
// may use one Env; different Envs are independent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envs/alfworld/game.h"

namespace embodied_mem::alfworld {

// ALFWorld's wording: k04 says "move X to Y", k03 (releases 0.3.x) "put X in/on Y" and has no `help`.
enum class Wording : std::uint8_t { k03, k04 };

// In the order in which the commands sort, save that 0.3's "put" stands where 0.4's "move" does: it sorts after
// kOpen there.
enum class Verb : std::uint8_t {
  kClean,
  kClose,
  kCool,
  kExamine,
  kGoTo,
  kHeat,
  kHelp,
  kInventory,
  kLook,
  kMove,
  kOpen,
  kSlice,
  kTake,
  kUse,
};

// A command that can be typed. `first` and `second` are ranks in Game::by_name, kNone where the verb takes none.
struct Command {
  Verb verb;
  std::uint16_t first = kNone;
  std::uint16_t second = kNone;
};

// The command as the player types it.
std::string CommandText(const Game& game, Wording wording, const Command& command);

class Env {
 public:
  // What VectorEnv (envs/vector_env.h) asks of a world; Extra are the admissible commands.
  using Task = Game;
  using Options = Wording;
  using Extra = std::vector<Command>;
  static constexpr const char* kOptionsName = "grammar";

  Env() = default;

  // Starts the game from its beginning; nothing in it is left to chance.
  void Reset(std::shared_ptr<const Game> game, Wording wording, std::uint64_t seed = 0);
  // Plays one command, whatever it says. A game that is won goes on answering, as the original does.
  // Throws InternalError before the first Reset.
  void Step(std::string_view command);

  const std::string& observation() const { return observation_; }
  bool won() const { return won_; }
  bool ended() const { return won_; }
  int num_steps() const { return num_steps_; }
  Wording options() const { return wording_; }
  const std::shared_ptr<const Game>& task() const { return game_; }
  const std::vector<std::uint64_t>& state() const { return state_; }

  // Share of the goal's conditions that hold, in [0, 1]; 1 exactly when won. One way to count is fixed per task type:
  //   place                 1 condition: an object of the type is in a receptacle of the type
  //   clean, heat, cool     2 of one object, the best one: treated; in a receptacle of the type
  //   place two             2: objects of the type in one receptacle of the type, the best one, at most two
  //   look                  3: the object is held; and of one lamp, the best one, it is on; the agent is where it is
  double progress() const;

  // Appends the admissible commands to *commands (cleared first) in the original's order: sorted by text.
  void FillExtra(std::vector<Command>* commands) const;

  // Reading the state, for experts and checks. Indices must be in range.
  std::uint16_t agent_location() const { return static_cast<std::uint16_t>(state_[0]); }
  bool holds_any() const { return (state_[0] & kHoldsAny) != 0; }
  bool Opened(std::size_t r) const { return Bit(game_->layout.opened, r); }
  bool Inside(std::size_t o, std::size_t r) const { return Bit(InsideBase(r), o); }
  bool Held(std::size_t o) const { return Bit(game_->layout.held, o); }
  bool Clean(std::size_t o) const { return Bit(game_->layout.clean, o); }
  bool Hot(std::size_t o) const { return Bit(game_->layout.hot, o); }
  bool Cool(std::size_t o) const { return Bit(game_->layout.cool, o); }
  bool Sliced(std::size_t o) const { return Bit(game_->layout.sliced, o); }
  bool Toggled(std::size_t o) const { return Bit(game_->layout.toggled, o); }
  // Whether the receptacle's content can be seen and reached by someone who stands there.
  bool Accessible(std::size_t r) const { return !game_->receptacles[r].openable || Opened(r); }

 private:
  bool Bit(std::size_t base, std::size_t i) const { return (state_[base + i / 64] >> (i % 64)) & 1U; }
  void SetBit(std::size_t base, std::size_t i) { state_[base + i / 64] |= 1ULL << (i % 64); }
  void ClearBit(std::size_t base, std::size_t i) { state_[base + i / 64] &= ~(1ULL << (i % 64)); }
  // Calls visit(o) for every object of the set that starts at word `base`, ascending.
  template <typename Visit>
  void ForEachInSet(std::size_t base, Visit visit) const {
    for (std::size_t w = 0; w < game_->layout.object_words; ++w) {
      for (std::uint64_t bits = state_[base + w]; bits != 0; bits &= bits - 1)
        visit(w * 64 + static_cast<std::size_t>(__builtin_ctzll(bits)));
    }
  }
  std::size_t InsideBase(std::size_t r) const { return game_->layout.inside + r * game_->layout.object_words; }
  std::size_t RemovedBase(std::size_t r) const { return game_->layout.removed + r * game_->layout.object_words; }
  std::size_t AtBase(std::size_t l) const { return game_->layout.at + l * game_->layout.object_words; }

  bool Here(std::uint16_t rank, bool receptacle) const;
  bool Applicable(const Command& command) const;
  bool Parse(std::string_view text, Command* command) const;
  void Apply(const Command& command);
  void UpdateWon();
  int ConditionsHeld(int* total) const;

  // Text; each appends to observation_.
  void SayList(const std::vector<const std::string*>& names);
  void SayContent(std::size_t r);
  void SayReceptacle(std::size_t r);
  void SayObject(std::size_t o);
  void SayLook(bool intro);
  void SayInventory();
  void SayHelp();

  std::shared_ptr<const Game> game_;
  std::vector<std::uint64_t> state_;
  std::string observation_;
  int num_steps_ = 0;
  Wording wording_ = Wording::k04;
  bool won_ = false;
};

}  // namespace embodied_mem::alfworld
