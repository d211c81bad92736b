import Foundation

/// The state that the user saw when they made a write: that of what it changes, with the effects of earlier pending writes.
/// The service refuses the write if there is something newer.
enum Basis: Codable, Sendable, Hashable {
  /// The answer of the user, or of the guest whose answer the write sets.
  case answer(GuestStatus, plusOnes: Int)
  /// The members that the write changes, as they were, with the tag of the object.
  case members([String: JSONValue], of: Tag)

  enum Tag: Codable, Sendable, Hashable {
    case version(Int)
    case stamp(Stamp)
  }

  /// Nil for a write that needs no basis, or that has one from the app.
  init?(of write: Write, _ state: NewerState) {
    switch (write, state) {
    case (.answer, .answer(let status, let plusOnes)), (.setAnswer, .answer(let status, let plusOnes)):
      self = .answer(status, plusOnes: plusOnes)
    case (.answer, .event(let event)) where event.myRole == .guest:
      self = .answer(event.myStatus, plusOnes: event.myPlusOnes)
    case (.editEvent(_, _, nil), .event(let event)): self.init(of: write, event, .version(event.version))
    case (.editProfile, .profile(let user)): self.init(of: write, user, user.timestamp.map(Tag.stamp))
    case (.setPreferences, .preferences(let preferences)):
      self.init(of: write, preferences, preferences.timestamp.map(Tag.stamp))
    default: return nil
    }
  }

  private init?(of write: Write, _ object: some Encodable, _ tag: Tag?) {
    guard let tag, case .object(let members)? = try? JSONValue(encoding: object) else { return nil }
    self = .members(
      Dictionary(uniqueKeysWithValues: write.members.keys.map { ($0, members[$0] ?? .null) }), of: tag)
  }

  /// The basis for the same write on an object that has changed since, if only other members have changed.
  func renewed(for write: Write, on state: NewerState) -> Basis? {
    guard case .members(let old, _) = self, let basis = Basis(of: write, state), case .members(let new, _) = basis
    else { return nil }
    let wanted = write.members
    return new.allSatisfy { $0.value == old[$0.key] || $0.value == wanted[$0.key] } ? basis : nil
  }

  var party: Party? {
    if case .answer(let status, let plusOnes) = self { Party(status: status, plusOnes: plusOnes) } else { nil }
  }

  var version: Int? { if case .members(_, .version(let version)) = self { version } else { nil } }

  var stamp: Stamp? { if case .members(_, .stamp(let stamp)) = self { stamp } else { nil } }
}

/// A state that is newer than the one that the user saw when they made a write.
public enum NewerState: Codable, Sendable, Hashable {
  /// The answer of the user, or of the guest whose answer the write sets.
  case answer(GuestStatus, plusOnes: Int)
  case event(Event)
  case profile(User)
  case preferences(NotificationPreferences)
}

extension Write {
  /// The members that an edit sets, as JSON.
  fileprivate var members: [String: JSONValue] {
    let json =
      switch self {
      case .editEvent(_, let edit, _): try? JSONValue(encoding: edit)
      case .editProfile(let edit): try? JSONValue(encoding: edit)
      // Without the stamp.
      case .setPreferences(let new): try? JSONValue(encoding: NotificationPreferences(new.choices))
      case .answer, .acceptRequest, .declineRequest, .cancelRequest, .sendRequest, .endFriendship, .block, .unblock,
        .createEvent, .cancelEvent, .invite, .withdraw, .setAnswer, .approve, .addHost, .removeHost, .markRead,
        .markAllRead, .report:
        JSONValue?.none
      }
    guard case .object(let members)? = json else { return [:] }
    return members
  }

  /// The service's current values of the object that an edit changes; nil for other writes.
  ///
  /// - Throws: ``MusterError``
  func currentState(with client: MusterClient) async throws -> NewerState? {
    switch self {
    case .editEvent(let id, _, _): .event(try await client.events.get(id))
    case .editProfile: .profile(try await client.me.get())
    case .setPreferences: .preferences(try await client.notifications.preferences())
    case .answer, .acceptRequest, .declineRequest, .cancelRequest, .sendRequest, .endFriendship, .block, .unblock,
      .createEvent, .cancelEvent, .invite, .withdraw, .setAnswer, .approve, .addHost, .removeHost, .markRead,
      .markAllRead, .report:
      nil
    }
  }
}
