import Foundation
import MusterKit
import TestSupport

extension MusterStore {
  private enum Kind: CaseIterable {
    case answer, acceptRequest, declineRequest, cancelRequest, sendRequest, endFriendship, block, unblock
    case createEvent, editEvent, cancelEvent, invite, withdraw, markRead, markAllRead, editProfile, setPreferences

    /// How often it is chosen.
    var weight: Int {
      switch self {
      case .answer, .acceptRequest, .sendRequest, .createEvent, .editEvent: 6
      case .invite, .withdraw, .markRead, .editProfile: 3
      case .unblock: 4
      default: 1
      }
    }
  }

  private static let kinds = Kind.allCases.flatMap { kind in Array(repeating: kind, count: kind.weight) }

  /// A write that makes sense for what the store shows, which may be out of date. Nil if the chosen kind does not.
  ///
  /// - Parameters:
  ///   - number: for texts that differ.
  ///   - people: the users who may be asked, invited and blocked.
  func randomWrite(_ number: Int, _ people: [Person], using random: inout SeededRandom) -> Write? {
    let mine = events.items.filter { $0.myRole == .creator }
    let others = people.filter { $0.id != profile.value?.id }
    func some(_ people: [Person]) -> [User.ID] {
      people.filter { _ in Bool.random(using: &random) }.map(\.id)
    }
    switch Self.kinds.randomElement(using: &random) {
    case nil: return nil
    case .answer:
      let answers: [Answer] = [.going, .maybe, .declined]
      guard let event = events.items.filter({ $0.myRole == .guest }).randomElement(using: &random),
        let status = answers.randomElement(using: &random)
      else { return nil }
      return .answer(status, to: event.id)
    case .acceptRequest: return friendRequests.items.randomElement(using: &random).map { .acceptRequest($0.id) }
    case .declineRequest: return friendRequests.items.randomElement(using: &random).map { .declineRequest($0.id) }
    case .cancelRequest: return sentFriendRequests.items.randomElement(using: &random).map { .cancelRequest($0.id) }
    case .sendRequest: return others.randomElement(using: &random).map { .sendRequest(to: $0) }
    case .endFriendship: return friends.items.randomElement(using: &random).map { .endFriendship(with: $0.user.id) }
    // A block ends a friendship and invitations, so blocks must stay rare.
    case .block:
      return Int.random(in: 0..<6, using: &random) > 0 ? nil : others.randomElement(using: &random).map { .block($0) }
    case .unblock: return blocks.items.randomElement(using: &random).map { .unblock($0.user.id) }
    case .createEvent:
      var draft = EventDraft.planned("Event \(number)", capacity: [nil, 1, 2].randomElement(using: &random) ?? nil)
      draft.startTime += TimeInterval(Int.random(in: 0..<10, using: &random) * 3600)
      draft.inviteeIds = some(friends.items.map(\.user))
      // No edit changes it.
      draft.location = Location(name: "Mark \(number) \(UInt32.random(in: 0...UInt32.max))")
      return .createEvent(draft)
    case .editEvent:
      guard let event = mine.randomElement(using: &random) else { return nil }
      var edit = EventEdit(title: "Edited \(number)")
      if Bool.random(using: &random) { edit.note = Bool.random(using: &random) ? .clear : .set("Note \(number)") }
      if Bool.random(using: &random) { edit.capacity = .set(.random(in: 1...3, using: &random)) }
      if Bool.random(using: &random) {
        edit.startTime = event.startTime + TimeInterval(Int.random(in: -5...5, using: &random) * 3600)
      }
      return .editEvent(event.id, applying: edit, ifVersion: Bool.random(using: &random) ? event.version : nil)
    case .cancelEvent: return mine.randomElement(using: &random).map { .cancelEvent($0.id) }
    case .invite:
      let users = some(friends.items.map(\.user))
      return users.isEmpty ? nil : mine.randomElement(using: &random).map { .invite(users, to: $0.id) }
    case .withdraw:
      guard let event = mine.randomElement(using: &random), let user = others.randomElement(using: &random) else {
        return nil
      }
      return .withdraw(Guest.ID(user.id), from: event.id)
    case .markRead:
      let ids = notifications.items.filter { $0.readAt == nil }.prefix(3).map(\.id)
      return ids.isEmpty ? nil : .markRead(Array(ids))
    case .markAllRead: return notifications.isLoaded ? .markAllRead() : nil
    case .editProfile:
      return .editProfile(
        Bool.random(using: &random)
          ? ProfileEdit(displayName: "Name \(number)") : ProfileEdit(bio: .set("Bio \(number)")))
    case .setPreferences:
      let types: [NotificationType] = [.eventUpdated, .eventInvited, .friendAccepted]
      guard let type = types.randomElement(using: &random) else { return nil }
      return .setPreferences(NotificationPreferences([type: Bool.random(using: &random)]))
    }
  }
}

extension Write {
  /// The name of the case.
  var name: String { String("\(self)".prefix { $0 != "(" }) }
}
