// Joining where the ranks have agreed to meet before any of them joins, for other faces of the library.
#pragma once

#include "control/join_job.h"
#include "tutti/communicator.h"

namespace tutti::internal {

struct JoinByAppointment {
  // As Communicator::join(). Of the settings it ignores the master and the secret.
  static Communicator join(const Settings& settings, Appointment appointment);
};

}  // namespace tutti::internal
