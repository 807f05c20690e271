// The end of the processes that this one has started, and of those that they have left behind.
#pragma once

namespace tutti::internal::tools {

// Sends SIGKILL to all children of this process, which are children of its main thread.
void kill_children();

// Kills and reaps all children of this process and all that fall to it by their death. Requires PR_SET_CHILD_SUBREAPER.
void end_descendants();

}  // namespace tutti::internal::tools
