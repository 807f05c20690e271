#include "transport/verbs/device_events.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "transport/verbs/rc_queue_pair.h"

namespace tutti::internal::verbs {

DeviceEvents::DeviceEvents(ibv_context* context, std::string name, std::uint8_t port)
    : context_(context), name_(std::move(name)), port_(port) {
  const int flags = fcntl(context_->async_fd, F_GETFL);
  if (flags < 0 || fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK) != 0)
    refuse("cannot listen to " + name_, errno);
}

void DeviceEvents::take_in() {
  ibv_async_event event;
  while (ibv_get_async_event(context_, &event) == 0) {
    switch (event.event_type) {
      case IBV_EVENT_PORT_ERR:
        if (event.element.port_num == port_ && !down_since_) down_since_ = Clock::now();
        break;
      case IBV_EVENT_PORT_ACTIVE:
        if (event.element.port_num == port_) down_since_.reset();
        break;
      case IBV_EVENT_DEVICE_FATAL: has_failed_ = true; break;
      case IBV_EVENT_CQ_ERR: static_cast<RcQueuePair*>(event.element.cq->cq_context)->lost(event.event_type); break;
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
        static_cast<RcQueuePair*>(event.element.qp->qp_context)->lost(event.event_type);
        break;
      default: break;  // of addresses, paths and what is not used here
    }
    ibv_ack_async_event(&event);
  }
}

std::string DeviceEvents::error_text() {
  take_in();
  if (has_failed_) return "the device " + name_ + " has failed";
  if (down_since_ && Clock::now() - *down_since_ >= kLongestDown)
    return "the link of " + name_ + " (port " + std::to_string(port_) + ") is down";
  return "";
}

}  // namespace tutti::internal::verbs
