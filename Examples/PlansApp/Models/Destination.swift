import Foundation
import MusterKit

/// A place in the app to which a share link, a widget, a push or a notification leads.
enum Destination: Hashable, Sendable {
  case event(Event.ID)
  case friends
  case inbox
  /// The event behind a share link, which the user joins first.
  case shared(token: String)

  /// - Parameter url: as `onOpenURL` gives it: a share link, or `plans://event/ID`, which the app makes for its widget.
  init?(_ url: URL) {
    if url.scheme == "plans" {
      guard url.host() == "event", let id = Event.ID(url.lastPathComponent) else { return nil }
      self = .event(id)
    } else if let token = ShareLink.token(in: url) {
      self = .shared(token: token)
    } else {
      return nil
    }
  }

  init(of type: NotificationType, event: Event.ID?) {
    switch (type, event) {
    // The user no longer sees the event.
    case (.invitationWithdrawn, _): self = .inbox
    case (_, let event?): self = .event(event)
    case (.friendRequest, nil), (.friendAccepted, nil): self = .friends
    default: self = .inbox
    }
  }
}

extension InboxItem {
  var destination: Destination { Destination(of: type, event: eventId) }
}

/// A push that the user has tapped.
struct PushTap: Hashable, Sendable {
  let destination: Destination
  /// To mark it as read.
  let notification: InboxItem.ID?

  /// - Parameter userInfo: of the push. See "Devices" in docs/notifications.md.
  init(userInfo: [AnyHashable: Any]) {
    let type = NotificationType(rawValue: userInfo["type"] as? String ?? "")
    destination = Destination(of: type, event: (userInfo["eventId"] as? String).flatMap { Event.ID($0) })
    notification = (userInfo["notificationId"] as? String).flatMap { InboxItem.ID($0) }
  }
}
