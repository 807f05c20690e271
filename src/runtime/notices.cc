#include "runtime/notices.h"

namespace tutti::internal {

void Notices::heard(const Notice& notice) {
  const std::lock_guard lock(mutex_);
  switch (notice.kind) {
    case Notice::Kind::lost:
      lost_[notice.peer] = notice.message;
      for (JobMember* member : members_) member->lose(notice.peer, notice.message);
      break;
    case Notice::Kind::left: left_[notice.peer].store(true, std::memory_order_release); break;
    case Notice::Kind::agreed:
    case Notice::Kind::differed: partings_.heard(notice); break;
    case Notice::Kind::poisoned:
      poisoned_.try_emplace(notice.communicator, notice);
      for (JobMember* member : members_)
        if (member->told_as() == notice.communicator) member->on_notice(notice);
      break;
    case Notice::Kind::answer:
      for (JobMember* member : members_)
        if (member->id() == notice.communicator) member->on_notice(notice);
      break;
  }
}

void Notices::add(JobMember& member) {
  const std::lock_guard lock(mutex_);
  members_.push_back(&member);
  if (const auto known = poisoned_.find(member.told_as()); known != poisoned_.end()) member.on_notice(known->second);
  for (const auto& [peer, why] : lost_) member.lose(peer, why);
}

void Notices::remove(JobMember& member) {
  const std::lock_guard lock(mutex_);
  std::erase(members_, &member);
}

void Notices::fail_all_at_exit() {
  const std::lock_guard lock(mutex_);
  for (JobMember* member : members_) member->fail_at_exit();
}

void Notices::after_fork_in_child() {
  for (JobMember* member : members_) member->live_for_ever();
  mutex_.unlock();
}

}  // namespace tutti::internal
