// What a function that XLA calls on a CPU needs of XLA's C interface, so that the build needs no headers of it.
//
// Source: xla/ffi/api/c_api.h, interface 0.3, which XLA's own headers (`jax.ffi.include_dir()`) describe in full. The
// interface only grows at the ends of structs within a major version; XLA asks every function for its version when it is
// registered and refuses one that it does not support.
#pragma once

#include <cstddef>
#include <cstdint>

namespace embodied_mem {

struct XlaError;

// XLA passes one only to ask what the function is.
struct XlaExtension {
  std::size_t size;
  int type;
  XlaExtension* next;
};

inline constexpr int kXlaMetadata = 1;

struct XlaMetadata {
  std::size_t size;
  struct {
    std::size_t size;
    XlaExtension* extension;
    int major, minor;
  } version;
  std::uint32_t traits;
};

struct XlaMetadataExtension {
  XlaExtension base;
  XlaMetadata* metadata;
};

struct XlaBuffer {
  std::size_t size;
  XlaExtension* extension;
  int element_type;
  void* data;
  std::int64_t rank;
  std::int64_t* dims;
};

struct XlaBuffers {
  std::size_t size;
  XlaExtension* extension;
  std::int64_t count;
  int* kinds;
  XlaBuffer** buffers;
};

// Attributes follow; functions without any need not know of them.
struct XlaCall {
  std::size_t size;
  XlaExtension* extension;
  const void* interface;
  void* context;
  int stage;
  XlaBuffers arguments, results;
};

// Answers XLA's question.
inline void DescribeHandler(XlaExtension* question) {
  XlaMetadata* metadata = reinterpret_cast<XlaMetadataExtension*>(question)->metadata;
  metadata->version.major = 0;
  metadata->version.minor = 3;
  metadata->traits = 0;
}

}  // namespace embodied_mem
