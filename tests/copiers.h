// Who copies a message, in tests.
#pragma once

#include "transport/channel.h"

namespace tutti::internal {

inline constexpr Copier kEach, kPeer{.ordinary = OrdinaryCopier::peer}, kSender{.shared = SharedCopier::sender},
    kFarSender{.shared = SharedCopier::far_sender}, kBothCopy{SharedCopier::split, OrdinaryCopier::split};

}  // namespace tutti::internal
