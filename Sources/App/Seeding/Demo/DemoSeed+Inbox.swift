import Foundation
import Postgres

extension DemoSeed {
  /// A notification in a user's inbox. Which of the optional members it needs depends on its type.
  struct InboxSeed: Decodable {
    /// The event before an edit.
    struct Before: Decodable {
      let title: String?
      /// `HH:mm`
      let time: String?
    }
    let id: UUID
    /// The recipient.
    let to: String
    /// A ``Notice/Kind``.
    let type: String
    let person: String?
    let event: UUID?
    /// One of the event's visitors.
    let visitor: UUID?
    let request: UUID?
    /// The title of an event that is not in the demo.
    let title: String?
    let before: Before?
    /// In hours from now; nil for an invitation, or an event's reminder, which have the event's times.
    let hours: Int?
    let read: Bool?
  }

  /// - Parameter place: the item's position in the file. No two items of an inbox may have the same time.
  func plant(
    _ item: InboxSeed, at place: Int, zones: ZoneDatabase, now: Date, in change: Change
  ) throws {
    let recipient = try person(item.to).user
    let notice = try notice(of: item, zones: zones, now: now).stored
    let createdAt = try time(of: item, zones: zones, now: now)
    let filedAt = Timestamp(microseconds: createdAt.microseconds + Int64(place))
    let readAt = item.read == true ? min(createdAt.adding(seconds: 3600), Timestamp(now)) : nil
    try change.write(
      """
      INSERT INTO notifications (
        recipient_id, filed_at, id, type, subject_id, person_id, payload, created_at, read_at
      )
      VALUES (
        \(recipient), \(filedAt), \(item.id), \(notice.kind), \(notice.subject), \(notice.person), \(notice.payload),
        \(createdAt), \(readAt)
      )
      ON CONFLICT DO NOTHING
      """)
  }

  private func time(of item: InboxSeed, zones: ZoneDatabase, now: Date) throws -> Timestamp {
    if let hours = item.hours { return Timestamp(now).adding(seconds: hours * 3600) }
    let event = try event(item)
    guard item.type == Notice.Kind.eventReminder.rawValue else { return invitedAt(event, now: now) }
    return try plan(of: event, zones: zones, now: now).startTime.adding(seconds: -Event.reminderLead)
  }

  private func notice(of item: InboxSeed, zones: ZoneDatabase, now: Date) throws -> Notice {
    switch Notice.Kind(rawValue: item.type) {
    case .friendRequest:
      guard let request = friends.requests.first(where: { $0.id == item.request }) else {
        throw AppError.invalidSeed("The notification \(item.id) names no friend request.")
      }
      return .friendRequest(FriendRequest.ID(rawValue: request.id), from: try person(request.from).person)
    case .friendAccepted: return .friendAccepted(by: try person(item.person).person)
    case .accountClaimed:
      return .accountClaimed(try person(item.to).user, User.Leftovers(friends: 1, events: 0, links: 0))
    case .sessionRevoked: return .sessionRevoked(Session.ID(rawValue: item.id))
    case .invitationWithdrawn:
      // The recipient no longer sees the event.
      guard let event = item.event, let title = item.title else {
        throw AppError.invalidSeed("The notification \(item.id) has no event or no title.")
      }
      return .invitationWithdrawn(Event.ID(rawValue: event), title)
    case let kind?: return try notice(kind, of: item, about: try event(item), zones: zones, now: now)
    case nil: throw AppError.invalidSeed("The notification \(item.id) has an unknown type.")
    }
  }

  private func notice(
    _ kind: Notice.Kind, of item: InboxSeed, about event: EventSeed, zones: ZoneDatabase, now: Date
  ) throws -> Notice {
    let (id, title) = (Event.ID(rawValue: event.id), event.title)
    let creator = try person(event.creator)
    switch kind {
    case .eventInvited: return .eventInvited(id, title, by: creator.person)
    case .eventUpdated:
      let new = try plan(of: event, zones: zones, now: now)
      var old = try plan(of: event, at: item.before?.time, zones: zones, now: now)
      old.title = item.before?.title ?? title
      return .eventUpdated(id, title, new.differences(from: old), by: creator.user)
    case .eventCancelled: return .eventCancelled(id, title, by: creator.user)
    case .invitationAnswered:
      let guest = try person(item.person)
      return .guestAnswered(
        id, title, Notice.NamedGuest(guest.person), try status(of: guest.username, at: event),
        with: event.plusOnes?[guest.username] ?? 0)
    case .waitlistPromoted where item.person != nil:
      let guest = try person(item.person)
      return .guestPromoted(id, title, Notice.NamedGuest(guest.person), by: guest.user)
    case .waitlistPromoted: return .waitlistPromoted(id, title, guest: try person(item.to).user)
    case .hostOffered:
      guard event.coHosts?.contains(item.to) == true else {
        throw AppError.invalidSeed("\(item.to) is not a co-host of \(title).")
      }
      return .hostOffered(id, title, Proposal.ID(rawValue: item.id), by: creator.person)
    case .hostAdded: return .hostAdded(id, title, by: try person(item.person).person)
    case .answerMerged: return .answerMerged(id, title, try status(of: item.to, at: event))
    // Refused by now.
    case .answerProposed: return .answerProposed(id, title, Proposal.ID(rawValue: item.id), .maybe)
    case .answerSet: return .answerSet(id, title, try status(of: item.to, at: event), by: creator.person)
    case .answerReminder:
      guard try status(of: item.to, at: event) == .invited else {
        throw AppError.invalidSeed("\(item.to) has answered the invitation to \(title).")
      }
      return .answerReminder(id, title, by: creator.person)
    case .guestAnswered:
      let visitor = try visitor(item, at: event)
      guard let status = Invitation.Status(rawValue: visitor.answer) else {
        throw AppError.invalidSeed("\(visitor.name) has an unknown answer.")
      }
      return .guestAnswered(id, title, named(visitor), status, with: visitor.plusOnes ?? 0)
    case .approvalRequested:
      let visitor = try visitor(item, at: event)
      return .approvalRequested(id, title, named(visitor), with: visitor.plusOnes ?? 0)
    case .eventReminder: return .eventReminder(id, title, start: try plan(of: event, zones: zones, now: now).startTime)
    case .friendRequest, .friendAccepted, .accountClaimed, .sessionRevoked, .invitationWithdrawn:
      throw AppError.invalidSeed("The notification \(item.id) is not about an event.")
    }
  }

  private func named(_ visitor: VisitorSeed) -> Notice.NamedGuest {
    Notice.NamedGuest(id: Guest.ID(rawValue: visitor.id), name: visitor.name)
  }

  private func status(of guest: String, at event: EventSeed) throws -> Invitation.Status {
    guard let status = event.guests[guest].flatMap(Invitation.Status.init(rawValue:)) else {
      throw AppError.invalidSeed("\(guest) is not a guest of \(event.title).")
    }
    return status
  }

  private func visitor(_ item: InboxSeed, at event: EventSeed) throws -> VisitorSeed {
    guard let visitor = event.visitors?.first(where: { $0.id == item.visitor }) else {
      throw AppError.invalidSeed("The notification \(item.id) names no visitor of \(event.title).")
    }
    return visitor
  }

  private func event(_ item: InboxSeed) throws -> EventSeed {
    guard let event = events.first(where: { $0.id == item.event }) else {
      throw AppError.invalidSeed("The notification \(item.id) names no event.")
    }
    return event
  }
}
