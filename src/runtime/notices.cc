#include "runtime/notices.h"

#include <algorithm>

namespace tutti::internal {

void Notices::heard(const Notice& notice) {
  const std::lock_guard lock(mutex_);
  switch (notice.kind) {
    case Notice::Kind::left:
      left_[notice.peer].store(true, std::memory_order_release);
      decisions_.look_again();
      break;
    case Notice::Kind::agreed:
    case Notice::Kind::differed: partings_.heard(notice); break;
    case Notice::Kind::lost:
    case Notice::Kind::poisoned:
    case Notice::Kind::expelled:
      bad_news_.push_back(notice);
      for (JobMember* member : members_) tell(*member, notice);
      // Behind them: a member that has not failed yet when it expects its parting hears of it by that.
      if (notice.kind == Notice::Kind::poisoned) partings_.failed(notice);
      if (notice.kind == Notice::Kind::expelled) {
        decisions_.heard(notice);
        partings_.end();
      }
      decisions_.look_again();
      break;
    case Notice::Kind::absent:
    case Notice::Kind::decided:
      if (std::ranges::find(members_, notice.communicator, &JobMember::id) != members_.end()) decisions_.heard(notice);
      break;
    case Notice::Kind::answer:
      for (JobMember* member : members_)
        if (member->id() == notice.communicator) member->on_notice(notice);
      break;
  }
}

void Notices::tell(JobMember& member, const Notice& news) {
  if (news.kind == Notice::Kind::lost) return member.lose(news);
  if (news.kind == Notice::Kind::expelled || member.told_as() == news.communicator) member.on_notice(news);
}

void Notices::add(JobMember& member) {
  const std::lock_guard lock(mutex_);
  members_.push_back(&member);
  for (const Notice& news : bad_news_) tell(member, news);
}

void Notices::remove(JobMember& member) {
  const std::lock_guard lock(mutex_);
  std::erase(members_, &member);
  decisions_.forget(member.id());
}

void Notices::fail_all_at_exit() {
  const std::lock_guard lock(mutex_);
  for (JobMember* member : members_) member->fail_at_exit();
  decisions_.look_again();
}

void Notices::after_fork_in_child() {
  for (JobMember* member : members_) member->live_for_ever();
  mutex_.unlock();
}

}  // namespace tutti::internal
