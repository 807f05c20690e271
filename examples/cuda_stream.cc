// An all-reduce between two copies on a CUDA stream. The host waits once, for all three.
#include <cuda_runtime_api.h>
#include <tutti/communicator.h>

#include <cstdio>
#include <stdexcept>
#include <vector>

namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

}  // namespace

int main() {
  try {
    auto world = tutti::Communicator::from_env();
    int devices = 0;
    check(cudaGetDeviceCount(&devices));
    check(cudaSetDevice(world.rank() % devices));

    std::vector<float> values(1 << 20, static_cast<float>(world.rank()));
    const std::size_t bytes = values.size() * sizeof(float);
    cudaStream_t stream = nullptr;
    void* buffer = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMalloc(&buffer, bytes));

    check(cudaMemcpyAsync(buffer, values.data(), bytes, cudaMemcpyHostToDevice, stream));
    // Started, and not only made: a failure does not stop the stream, so its Work says whether the result is right.
    tutti::Work work = world.start_all_reduce(buffer, buffer, values.size(), tutti::DType::float32, tutti::Op::sum,
                                              {.stream = stream});
    check(cudaMemcpyAsync(values.data(), buffer, bytes, cudaMemcpyDeviceToHost, stream));
    check(cudaStreamSynchronize(stream));
    work.wait();

    std::printf("rank %d: the sum of the ranks is %g\n", world.rank(), values.back());
    check(cudaFree(buffer));
    check(cudaStreamDestroy(stream));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
