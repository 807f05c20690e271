// Any collective by its description, for what makes calls of all kinds: the tools, the tests, other faces of the
// library.
#pragma once

#include "tutti/communicator.h"
#include "types/call.h"

namespace tutti::internal {

struct AnyCall {
  // As the communicator's call of that collective. A barrier takes null twice. `scalar` as Operator::scalar.
  static void run(Communicator& world, const CallSpec& spec, ConstBuffer in, Buffer out, void* stream = nullptr,
                  const std::optional<Scalar>& scalar = {});
  static Work start(Communicator& world, const CallSpec& spec, ConstBuffer in, Buffer out, void* stream = nullptr,
                    const std::optional<Scalar>& scalar = {});
};

}  // namespace tutti::internal
