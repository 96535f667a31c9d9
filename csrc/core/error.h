// The errors that the native code throws. Bindings map each to its Python namesake in embodied_mem.errors.
//
// A message says what was expected, what came, where, and what to do. Nothing in csrc/ aborts the process.
#pragma once

#include <stdexcept>
#include <string>

namespace embodied_mem {

// The caller passed something that cannot be used.
class InvalidInputError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// A game file cannot be played; the message names the file, the position in it and the reason.
class GameFileError : public InvalidInputError {
 public:
  using InvalidInputError::InvalidInputError;
};

// A store's files cannot be read or written: damaged, of another version, in use, or the disk refuses.
class StorageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An invariant of the library is broken: a bug of ours.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace embodied_mem
