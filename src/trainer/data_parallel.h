// GradientSync through a communicator's all-reduce.
#pragma once

#include "trainer/gradient_sync.h"
#include "tutti/communicator.h"

namespace tutti::trainer {

// Refers to the communicator, which must outlive it; the same threading rules apply.
class DataParallel : public GradientSync {
 public:
  explicit DataParallel(Communicator& communicator) : communicator_(communicator) {}
  int rank() const override { return communicator_.rank(); }
  int size() const override { return communicator_.size(); }
  void sum(std::span<double> values) override;
  bool agree(std::uint64_t value) override;

 private:
  Communicator& communicator_;
};

}  // namespace tutti::trainer
