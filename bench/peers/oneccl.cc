// oneCCL's C++ API on host memory, measured as peer.h says. Started by Intel MPI, which oneCCL also sends over: rank 0
// makes the store of keys, MPI carries its address.
#include <mpi.h>

#include <oneapi/ccl.hpp>

#include "peer.h"

int main(int argc, char** argv) {
  ccl::init();
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
  peer::Library library{};
  MPI_Comm_rank(MPI_COMM_WORLD, &library.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &library.size);
  ccl::kvs::address_type address{};
  ccl::shared_ptr_class<ccl::kvs> store;
  if (library.rank == 0) address = (store = ccl::create_main_kvs())->get_address();
  MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  if (library.rank != 0) store = ccl::create_kvs(address);
  {
    const auto world = ccl::create_communicator(library.size, library.rank, store);
    library.barrier = [&] { ccl::barrier(world).wait(); };
    library.largest = [&](double mine) {
      double all = 0;
      ccl::allreduce(&mine, &all, 1, ccl::datatype::float64, ccl::reduction::max, world).wait();
      return all;
    };

    // A call of the same shape finds the schedule of an earlier one by this name, as in oneCCL's own benchmark.
    const std::string collective = argc > 2 ? argv[1] : "";
    const auto kept = [&](auto attributes, std::size_t count) {
      attributes.template set<ccl::operation_attr_id::match_id>(
          ccl::string_class(collective + " " + std::to_string(count)));
      attributes.template set<ccl::operation_attr_id::to_cache>(true);
      return attributes;
    };
    const auto type = ccl::datatype::float32;
    const auto sum = ccl::reduction::sum;
    peer::measure(library, argc, argv, [&](float* in, float* out, std::size_t count) -> std::function<void()> {
      const std::size_t part = count / static_cast<std::size_t>(library.size);
      if (collective == "all_reduce") {
        const auto how = kept(ccl::create_operation_attr<ccl::allreduce_attr>(), count);
        return [=, &world] { ccl::allreduce(in, out, count, type, sum, world, how).wait(); };
      }
      if (collective == "reduce_scatter") {
        const auto how = kept(ccl::create_operation_attr<ccl::reduce_scatter_attr>(), count);
        return [=, &world] { ccl::reduce_scatter(in, out, part, type, sum, world, how).wait(); };
      }
      if (collective == "all_gather") {
        const auto how = kept(ccl::create_operation_attr<ccl::allgather_attr>(), count);
        return [=, &world] { ccl::allgather(in, out, part, type, world, how).wait(); };
      }
      if (collective == "broadcast") {
        const auto how = kept(ccl::create_operation_attr<ccl::broadcast_attr>(), count);
        return [=, &world] { ccl::broadcast(in, count, type, 0, world, how).wait(); };
      }
      if (collective == "reduce") {
        const auto how = kept(ccl::create_operation_attr<ccl::reduce_attr>(), count);
        return [=, &world] { ccl::reduce(in, out, count, type, sum, 0, world, how).wait(); };
      }
      if (collective == "gather") {
        const auto how = kept(ccl::create_operation_attr<ccl::gather_attr>(), count);
        return [=, &world] { ccl::gather(in, out, part, type, 0, world, how).wait(); };
      }
      if (collective == "scatter") {
        const auto how = kept(ccl::create_operation_attr<ccl::scatter_attr>(), count);
        return [=, &world] { ccl::scatter(in, out, part, type, 0, world, how).wait(); };
      }
      if (collective == "all_to_all") {
        const auto how = kept(ccl::create_operation_attr<ccl::alltoall_attr>(), count);
        return [=, &world] { ccl::alltoall(in, out, part, type, world, how).wait(); };
      }
      if (collective == "ping_pong" || collective == "one_way") {  // as in mpi.cc
        const int peer = library.rank ^ 1;
        const bool first = library.rank % 2 == 0, goes_back = collective == "ping_pong";
        return [=, &world] {
          if (first) ccl::send(in, count, type, peer, world).wait();
          if (!first || goes_back) ccl::recv(out, count, type, peer, world).wait();
          if (!first && goes_back) ccl::send(in, count, type, peer, world).wait();
        };
      }
      if (collective == "barrier") return library.barrier;
      std::fprintf(stderr, "oneCCL has no %s here\n", collective.c_str());
      std::exit(2);
    });
  }
  store.reset();
  MPI_Finalize();
}
