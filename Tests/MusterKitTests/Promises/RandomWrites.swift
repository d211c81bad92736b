import Foundation
import MusterKit
import TestSupport

/// Writes at random, of each kind about as often as its weight says.
@MainActor struct RandomWrites {
  /// The cases of `Write`.
  enum Kind: String, CaseIterable {
    case answer, acceptRequest, declineRequest, cancelRequest, sendRequest, endFriendship, block,
      unblock
    case createEvent, editEvent, cancelEvent, invite, withdraw, setAnswer, approve, addHost,
      removeHost
    case markRead, markAllRead, editProfile, setPicture, removePicture, setPreferences, report

    fileprivate var weight: Int {
      switch self {
      case .answer, .acceptRequest, .sendRequest, .createEvent, .editEvent: 6
      case .invite, .withdraw, .markRead, .editProfile, .setAnswer, .approve: 3
      case .unblock, .addHost: 4
      default: 1
      }
    }
  }

  /// The user's device, as the user sees it.
  struct View {
    let store: MusterStore
    /// The event that is open.
    let screen: OpenedEvent?
    /// The users who may be asked, invited and blocked.
    let people: [Person]
  }

  private static let all = Kind.allCases.flatMap { kind in
    Array(repeating: kind, count: kind.weight)
  }

  private var deck: [Kind] = []
  private var made: Set<Kind> = []
  /// For texts that differ.
  private var number = 0

  /// A write that makes sense for what a device shows, which may be out of date. Nil if the next kind does not.
  mutating func next(for view: View, using random: inout SeededRandom) -> Write? {
    number += 1
    if deck.isEmpty { deck = Self.all.shuffled(using: &random) }
    // A kind that was not possible yet gets more chances.
    let isOwed = Bool.random(using: &random)
    let owed =
      isOwed ? Kind.allCases.filter { !made.contains($0) }.randomElement(using: &random) : nil
    let kind = owed ?? deck.removeLast()
    let write = write(kind, for: view, using: &random)
    if write != nil { made.insert(kind) }
    return write
  }

  private func write(_ kind: Kind, for view: View, using random: inout SeededRandom) -> Write? {
    let store = view.store
    let me = store.profile.value?.id
    let events = store.events.items
    let others = view.people.filter { $0.id != me }
    func one<Item>(_ items: [Item]) -> Item? { items.randomElement(using: &random) }
    func some(_ people: [Person]) -> [User.ID] {
      people.filter { _ in Bool.random(using: &random) }.map(\.id)
    }
    var mine: [Event] { events.filter { $0.myRole == .creator } }
    var hosted: [Event] { events.filter { $0.myRole != .guest } }
    var friends: [Person] { store.friends.items.map(\.user) }
    var guests: [Guest] { view.screen?.event?.guests?.items.filter { $0.user?.id != me } ?? [] }
    switch kind {
    case .answer:
      guard let event = one(events.filter { $0.myRole == .guest }), let answer = one(Answer.allCases) else {
        return nil
      }
      return .answer(answer, to: event.id, plusOnes: one([nil, nil, 0, event.maxPlusOnes]) ?? nil)
    case .acceptRequest: return one(store.friendRequests.items).map { .acceptRequest($0.id) }
    case .declineRequest: return one(store.friendRequests.items).map { .declineRequest($0.id) }
    case .cancelRequest: return one(store.sentFriendRequests.items).map { .cancelRequest($0.id) }
    case .sendRequest: return one(others).map { .sendRequest(to: $0) }
    case .endFriendship: return one(friends).map { .endFriendship(with: $0.id) }
    // A block ends a friendship and invitations, so blocks must stay rare.
    case .block: return Int.random(in: 0..<6, using: &random) > 0 ? nil : one(others).map { .block($0) }
    case .unblock: return one(store.blocks.items).map { .unblock($0.user.id) }
    case .createEvent:
      var draft = EventDraft.planned("Event \(number)", capacity: one([nil, 1, 2]) ?? nil)
      draft.startTime += TimeInterval(Int.random(in: 0..<10, using: &random) * 3600)
      draft.maxPlusOnes = one([nil, 2]) ?? nil
      draft.inviteeIds = some(friends)
      // No edit changes it.
      draft.location = Location(name: "Mark \(number) \(UInt32.random(in: 0...UInt32.max))")
      return .createEvent(draft)
    case .editEvent:
      guard let event = one(hosted) else { return nil }
      var edit = EventEdit(title: "Edited \(number)")
      if Bool.random(using: &random) { edit.note = Bool.random(using: &random) ? .clear : .set("Note \(number)") }
      if Bool.random(using: &random) { edit.capacity = .set(.random(in: 1...3, using: &random)) }
      if Bool.random(using: &random) {
        edit.startTime = event.startTime + TimeInterval(Int.random(in: -5...5, using: &random) * 3600)
      }
      return .editEvent(event.id, applying: edit, ifVersion: Bool.random(using: &random) ? event.version : nil)
    case .cancelEvent: return one(mine).map { .cancelEvent($0.id) }
    case .invite:
      let users = some(friends)
      return users.isEmpty ? nil : one(hosted).map { .invite(users, to: $0.id) }
    case .withdraw:
      guard let event = one(hosted), let user = one(others) else { return nil }
      return .withdraw(Guest.ID(user.id), from: event.id)
    case .setAnswer:
      guard let screen = view.screen, let guest = one(guests.filter { $0.status != .pending }),
        let answer = one(Answer.allCases)
      else { return nil }
      return .setAnswer(answer, of: guest, at: screen.id)
    case .approve:
      guard let screen = view.screen, let guest = one(guests.filter { $0.status == .pending }) else { return nil }
      return .approve(guest, at: screen.id)
    case .addHost:
      guard let event = one(mine), let friend = one(friends) else { return nil }
      return .addHost(friend.id, to: event.id)
    case .removeHost:
      let roles = events.flatMap { event in
        let hosts = event.hosts.filter { $0.id != event.creator?.id }
        return hosts.filter { event.myRole == .creator || $0.id == me }.map {
          (event: event.id, host: $0.id)
        }
      }
      return one(roles).map { .removeHost($0.host, from: $0.event) }
    case .markRead:
      let ids = store.notifications.items.filter { $0.readAt == nil }.prefix(3).map(\.id)
      return ids.isEmpty ? nil : .markRead(Array(ids))
    case .markAllRead: return store.notifications.isLoaded ? .markAllRead() : nil
    case .editProfile:
      let name = ProfileEdit(displayName: "Name \(number)")
      return .editProfile(
        Bool.random(using: &random) ? name : ProfileEdit(bio: .set("Bio \(number)")))
    case .setPicture: return .setPicture(NewPicture(.pixel(number), contentType: "image/png"))
    case .removePicture: return store.profile.value?.pictureUrl == nil ? nil : .removePicture
    case .setPreferences:
      let types: [NotificationType] = [.eventUpdated, .eventInvited, .friendAccepted]
      return one(types).map {
        .setPreferences(NotificationPreferences([$0: Bool.random(using: &random)]))
      }
    case .report:
      guard let reason = one(ReportReason.known), let user = one(others) else { return nil }
      let event = one(events.filter { $0.creator?.id != me })
      let subject: Report.Subject = event.map { .event($0.id) } ?? .user(user.id)
      return .report(subject, reason: reason, text: "Report \(number)")
    }
  }
}

extension Write {
  /// The name of the case.
  var name: String { String("\(self)".prefix { $0 != "(" }) }
}

extension Data {
  /// A picture of one pixel. Bytes after its end make another file of it.
  static func pixel(_ number: Int) -> Data {
    let text =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNwaDgAAAKEAYEml6crAAAAAElFTkSuQmCC"
    return (Data(base64Encoded: text) ?? Data()) + Data("\(number)".utf8)
  }
}
