// Gloo over TCP, measured as peer.h says. Started by `tutti run`, which says who is who; GLOO_STORE is an empty folder
// where the ranks meet, GLOO_ALGORITHM is ring or bcube.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>

#include "peer.h"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void add(void* to, const void* a, const void* b, std::size_t count) { gloo::sum<float>(to, a, b, count); }
void keep_larger(void* to, const void* a, const void* b, std::size_t count) { gloo::max<double>(to, a, b, count); }

}  // namespace

int main(int argc, char** argv) {
  peer::Library library{};
  library.rank = std::atoi(variable("TUTTI_RANK").c_str());
  library.size = std::atoi(variable("TUTTI_SIZE").c_str());
  const auto context = std::make_shared<gloo::rendezvous::Context>(library.rank, library.size);
  gloo::rendezvous::FileStore store(variable("GLOO_STORE"));
  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  context->connectFullMesh(store, device);

  library.barrier = [&] {
    gloo::BarrierOptions options(context);
    gloo::barrier(options);
  };
  library.largest = [&](double mine) {
    gloo::AllreduceOptions options(context);
    options.setOutput(&mine, 1);
    options.setReduceFunction(keep_larger);
    gloo::allreduce(options);
    return mine;
  };
  const std::string collective = argc > 2 ? argv[1] : "";
  const bool bcube = variable("GLOO_ALGORITHM") == "bcube";
  peer::measure(library, argc, argv, [&](float* in, float* out, std::size_t count) -> std::function<void()> {
    const std::size_t part = count / static_cast<std::size_t>(library.size);
    if (collective == "all_reduce")
      return [=] {
        gloo::AllreduceOptions options(context);
        options.setAlgorithm(bcube ? gloo::AllreduceOptions::Algorithm::BCUBE
                                   : gloo::AllreduceOptions::Algorithm::RING);
        options.setInput(in, count);
        options.setOutput(out, count);
        options.setReduceFunction(add);
        gloo::allreduce(options);
      };
    if (collective == "all_gather")
      return [=] {
        gloo::AllgatherOptions options(context);
        options.setInput(in, part);
        options.setOutput(out, count);
        gloo::allgather(options);
      };
    if (collective == "broadcast")
      return [=] {
        gloo::BroadcastOptions options(context);
        options.setOutput(in, count);
        options.setRoot(0);
        gloo::broadcast(options);
      };
    if (collective == "barrier") return library.barrier;
    std::fprintf(stderr, "gloo has no %s here\n", collective.c_str());
    std::exit(2);
  });
}
