// Open MPI, MPICH or Intel MPI, whichever compiled this, measured as peer.h says.
#include <mpi.h>

#include "peer.h"

namespace {

// Between ranks 0 and 1, 2 and 3, ...; as bench/message_benchmark.cc.
std::function<void()> message(int rank, float* in, float* out, int count, const std::string& way) {
  const int peer = rank ^ 1;
  const bool first = rank % 2 == 0, goes_back = way == "ping_pong";
  return [=] {
    if (first) MPI_Send(in, count, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
    if (!first || goes_back) MPI_Recv(out, count, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!first && goes_back) MPI_Send(in, count, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
  };
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  peer::Library library{};
  MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &library.size);
  library.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  library.largest = [](double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
  };
  const std::string collective = argc > 2 ? argv[1] : "";
  peer::measure(library, argc, argv, [&](float* in, float* out, std::size_t count) -> std::function<void()> {
    const int all = static_cast<int>(count), part = all / library.size;
    if (collective == "all_reduce") return [=] { MPI_Allreduce(in, out, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
    if (collective == "reduce_scatter")
      return [=] { MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
    if (collective == "all_gather")
      return [=] { MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD); };
    if (collective == "broadcast") return [=] { MPI_Bcast(in, all, MPI_FLOAT, 0, MPI_COMM_WORLD); };
    if (collective == "reduce") return [=] { MPI_Reduce(in, out, all, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD); };
    if (collective == "gather")
      return [=] { MPI_Gather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, 0, MPI_COMM_WORLD); };
    if (collective == "scatter")
      return [=] { MPI_Scatter(in, part, MPI_FLOAT, out, part, MPI_FLOAT, 0, MPI_COMM_WORLD); };
    if (collective == "all_to_all")
      return [=] { MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD); };
    if (collective == "scan") return [=] { MPI_Scan(in, out, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
    if (collective == "exclusive_scan") return [=] { MPI_Exscan(in, out, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); };
    if (collective == "ping_pong" || collective == "one_way") return message(library.rank, in, out, all, collective);
    if (collective == "barrier") return [] { MPI_Barrier(MPI_COMM_WORLD); };
    std::fprintf(stderr, "usage: mpi COLLECTIVE SIZES [touch]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
    return {};
  });
  MPI_Finalize();
}
