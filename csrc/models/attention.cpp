#include "models/attention.h"

#include <vector>

#include "models/xla_call.h"
#include "simd/simd.h"

namespace embodied_mem {
namespace {

constexpr std::size_t kEnoughTasks = 16;  // with fewer, each head is a task

AttentionHeads HeadsOf(const AttentionSizes& sizes, const AttentionPass& pass, std::size_t head, float* row_sums) {
  const std::size_t row = head / sizes.kv_heads, kv_head = head % sizes.kv_heads;
  const std::size_t key_stride = sizes.kv_heads * sizes.dim, query_stride = key_stride * sizes.groups;
  const std::size_t query = row * sizes.length * query_stride + kv_head * sizes.groups * sizes.dim;
  const std::size_t key = row * sizes.length * key_stride + kv_head * sizes.dim;
  const std::size_t sums = head * sizes.groups * sizes.length;
  // The backward kernel only reads context and log_sums.
  return {sizes.length,
          sizes.groups,
          sizes.dim,
          query_stride,
          key_stride,
          pass.query + query,
          pass.keys + key,
          pass.values + key,
          pass.mask + row * sizes.length,
          const_cast<float*>(pass.context) + query,
          const_cast<float*>(pass.log_sums) + sums,
          row_sums + sums};
}

const float* In(const XlaCall& call, std::size_t i) {
  return static_cast<const float*>(call.arguments.buffers[i]->data);
}
float* Out(const XlaCall& call, std::size_t i) { return static_cast<float*>(call.results.buffers[i]->data); }

AttentionSizes SizesOf(const XlaCall& call) {
  const std::int64_t* dims = call.arguments.buffers[0]->dims;
  const auto size = [&](int i) { return static_cast<std::size_t>(dims[i]); };
  return {size(0), size(1), size(2), size(3), size(4)};
}

bool Answered(XlaCall* call) {
  if (call->extension == nullptr) return false;
  if (call->extension->type == kXlaMetadata) DescribeHandler(call->extension);
  return true;
}

XlaError* Forward(XlaCall* call) {
  if (Answered(call)) return nullptr;
  CausalAttention(SizesOf(*call), In(*call, 0), In(*call, 1), In(*call, 2),
                  static_cast<const std::uint8_t*>(call->arguments.buffers[3]->data), Out(*call, 0), Out(*call, 1));
  return nullptr;
}

XlaError* Backward(XlaCall* call) {
  if (Answered(call)) return nullptr;
  const AttentionPass pass{In(*call, 0), In(*call, 1),
                           In(*call, 2), static_cast<const std::uint8_t*>(call->arguments.buffers[3]->data),
                           In(*call, 4), In(*call, 5)};
  CausalAttentionBackward(SizesOf(*call), pass, In(*call, 6), Out(*call, 0), Out(*call, 1), Out(*call, 2));
  return nullptr;
}

}  // namespace

void CausalAttention(const AttentionSizes& sizes, const float* query, const float* keys, const float* values,
                     const std::uint8_t* mask, float* context, float* log_sums, ShortLoops& loops) {
  const SimdKernels& kernels = Kernels();
  const std::size_t num_heads = sizes.batch * sizes.kv_heads;
  const std::size_t parts =
      num_heads < kEnoughTasks ? sizes.groups : 1;  // the heads of a part share the work on their keys
  std::vector<float> row_sums(num_heads * sizes.groups * sizes.length);
  loops.Run(num_heads * parts, [&](std::size_t task) {
    AttentionHeads heads =
        HeadsOf(sizes, {query, keys, values, mask, context, log_sums}, task / parts, row_sums.data());
    heads.num_heads = sizes.groups / parts;
    const std::size_t first = task % parts * heads.num_heads;
    heads.query += first * sizes.dim;
    heads.context += first * sizes.dim;
    heads.log_sums += first * sizes.length;
    heads.row_sums += first * sizes.length;
    kernels.attend(heads);
  });
}

void CausalAttentionBackward(const AttentionSizes& sizes, const AttentionPass& pass, const float* context_gradient,
                             float* query_gradient, float* key_gradient, float* value_gradient, ShortLoops& loops) {
  const SimdKernels& kernels = Kernels();
  const std::size_t num_heads = sizes.batch * sizes.kv_heads;
  std::vector<float> row_sums(num_heads * sizes.groups * sizes.length);
  loops.Run(num_heads, [&](std::size_t head) {
    const AttentionHeads heads = HeadsOf(sizes, pass, head, row_sums.data());
    const std::size_t query = static_cast<std::size_t>(heads.query - pass.query);
    const std::size_t key = static_cast<std::size_t>(heads.keys - pass.keys);
    kernels.attend_backward(
        heads, {context_gradient + query, query_gradient + query, key_gradient + key, value_gradient + key});
  });
}

void* AttentionHandler() { return reinterpret_cast<void*>(&Forward); }
void* AttentionBackwardHandler() { return reinterpret_cast<void*>(&Backward); }

}  // namespace embodied_mem
