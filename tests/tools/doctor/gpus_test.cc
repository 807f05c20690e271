// What `tutti doctor` says of GPUs, on machines that are made up; and of this one's.
#include "doctor/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;
using topology::Proximity;

Gpus fake() {
  const auto device = [](int index, const char* pci) {
    return cuda::Device{index, "NVIDIA H100 80GB HBM3", 9, 0, 132, std::size_t{80} << 30, pci};
  };
  Gpus gpus;
  gpus.usable = {
      {device(0, "0000:07:00.0"), topology::Attachment{0, 0, 63.015, {"ibp8s0", "mlx5_0"}, Proximity::pci_switch}},
      {device(1, "0000:87:00.0"), topology::Attachment{1, 1, 0, {"mlx5_1"}, Proximity::part}},
      {device(3, "0000:f1:00.0"), std::nullopt}};
  gpus.reasons = {"GPU 2: GPU is lost"};
  gpus.links = {{0, 1, true, 0, true}, {0, 3, true, 1, false}, {1, 3, false, 0, false}};
  gpus.cuda = {"13.1", "13.0"};
  gpus.driver_release = "590.11";
  return gpus;
}

TEST(DoctorGpus, SaysWhereEachHangsAndWhatIsNearIt) {
  const std::string text = gpus_text(fake());
  EXPECT_THAT(text,
              HasSubstr("GPUs: 3; NVIDIA's driver 590.11 serves CUDA up to 13.1, this tutti was built with 13.0\n"
                        "    GPU 0: NVIDIA H100 80GB HBM3, compute capability 9.0, 132 multiprocessors, 80.0 GiB, "
                        "PCI 0000:07:00.0\n"
                        "      memory node 0, package 0, PCIe link at 63.0 GB/s now, nearest network: ibp8s0, "
                        "mlx5_0 (behind the same PCIe switch)\n"));
  EXPECT_THAT(text, HasSubstr("\n      memory node 1, package 1, nearest network: mlx5_1 (in the same package)\n"));
  EXPECT_THAT(text, HasSubstr("\n      where it hangs is not known: hwloc does not see it\n"));
  EXPECT_THAT(text, HasSubstr("    not usable: GPU 2: GPU is lost\n"));
}

TEST(DoctorGpus, SaysWhatADistanceIsAndWhereThereIsNoNetwork) {
  Gpus gpus = fake();
  gpus.usable[0].place->proximity = Proximity::root_complex;
  gpus.usable[1].place->proximity = Proximity::machine;
  EXPECT_THAT(gpus_text(gpus), HasSubstr("mlx5_0 (at the same root complex)\n"));
  EXPECT_THAT(gpus_text(gpus), HasSubstr("mlx5_1 (across the machine)\n"));
  gpus.usable[0].place->nearest.clear();
  EXPECT_THAT(gpus_text(gpus), HasSubstr("GB/s now, no network device\n"));
  gpus.driver_release.clear();
  EXPECT_THAT(gpus_text(gpus), HasSubstr("NVIDIA's driver serves CUDA up to 13.1"));
}

TEST(DoctorGpus, SaysWhichReachEachOther) {
  const std::string text = gpus_text(fake());
  EXPECT_THAT(text,
              HasSubstr("    GPU 0 and 1: each reaches the other's memory, performance rank 0, atomics too, as "
                        "NVLink has them\n"
                        "    GPU 0 and 3: each reaches the other's memory, performance rank 1, without atomics, as "
                        "over PCIe\n"
                        "    GPU 1 and 3: neither reaches the other's memory; they meet by the host's\n"
                        "      (performance rank: 0 is the fastest link of this machine)\n"));
}

TEST(DoctorGpus, WithoutAnySaysWhyInOneLine) {
  Gpus none;
  none.why_none = "no NVIDIA driver is installed here";
  none.reasons = {none.why_none};
  EXPECT_EQ(gpus_text(none), "GPUs: none: no NVIDIA driver is installed here\n");
  const auto json = gpus_json(none);
  EXPECT_EQ(json["why_none"], none.why_none);
  for (const char* name : {"driver", "driver_cuda", "toolkit"}) EXPECT_TRUE(json[name].is_null()) << name;
  EXPECT_TRUE(json["devices"].empty() && json["links"].empty());
}

TEST(DoctorGpus, JsonHasTheNamesThatTheHeaderSays) {
  EXPECT_EQ(gpus_json(fake()), nlohmann::ordered_json::parse(R"({"why_none":null,"driver":"590.11",
    "driver_cuda":"13.1","toolkit":"13.0","unusable":["GPU 2: GPU is lost"],"devices":[
    {"index":0,"name":"NVIDIA H100 80GB HBM3","compute_capability":"9.0","multiprocessors":132,
     "memory_bytes":85899345920,"pci":"0000:07:00.0","node":0,"package":0,"pcie_gbs":63.015,
     "nearest":["ibp8s0","mlx5_0"],"nearest_by":"pci_switch"},
    {"index":1,"name":"NVIDIA H100 80GB HBM3","compute_capability":"9.0","multiprocessors":132,
     "memory_bytes":85899345920,"pci":"0000:87:00.0","node":1,"package":1,"pcie_gbs":null,
     "nearest":["mlx5_1"],"nearest_by":"part"},
    {"index":3,"name":"NVIDIA H100 80GB HBM3","compute_capability":"9.0","multiprocessors":132,
     "memory_bytes":85899345920,"pci":"0000:f1:00.0","node":null,"package":null,"pcie_gbs":null,
     "nearest":[],"nearest_by":null}],"links":[
    {"first":0,"second":1,"direct":true,"rank":0,"atomics":true},
    {"first":0,"second":3,"direct":true,"rank":1,"atomics":false},
    {"first":1,"second":3,"direct":false,"rank":null,"atomics":false}]})"));
}

TEST(DoctorGpus, OfThisMachineAreWhatTheLibraryFinds) {
  const cuda::Devices found = cuda::find_devices();
  const Result run = shell("$TUTTI doctor");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(found.usable.empty() ? "\nGPUs: none: " + found.why_none() + "\n"
                                                      : "    GPU 0: " + found.usable[0].name));
}

}  // namespace
}  // namespace tutti::internal::tools
