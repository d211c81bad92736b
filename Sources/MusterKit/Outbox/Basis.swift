import Foundation

/// The service's values of what a write changes, as the device had them when the user made it. The service refuses the
/// write if there is something newer.
///
/// A write that follows a pending one of the same object is based on it: see ``after(_:withBasis:)``.
enum Basis: Codable, Sendable, Hashable {
  /// The answer of the user, or of the guest whose answer the write sets.
  case answer(GuestStatus, plusOnes: Int)
  /// Members of an object, with its tag. Without a tag, the object is read before the write is sent.
  case members([String: JSONValue], of: Tag?)

  /// The tag of the copy of an event in which the user saw a guest wait.
  case copy(String)

  enum Tag: Codable, Sendable, Hashable {
    case version(Int)
    case stamp(Stamp)
  }

  /// The whole object.
  init?(_ state: NewerState) {
    switch state {
    case .answer(let status, let plusOnes): self = .answer(status, plusOnes: plusOnes)
    case .event(let event): self.init(event, .version(event.version))
    case .profile(let user): self.init(user, user.timestamp.map(Tag.stamp))
    case .preferences(let preferences): self.init(preferences, preferences.timestamp.map(Tag.stamp))
    }
  }

  private init?(_ object: some Encodable, _ tag: Tag?) {
    guard case .object(let members)? = try? JSONValue(encoding: object) else { return nil }
    self = .members(members, of: tag)
  }

  /// The members of an object that a write changes. Nil for a write that needs no basis, or that has one from the app.
  init?(of write: Write, _ state: NewerState) {
    switch (write, state) {
    case (.answer, .event(let event)) where event.myRole == .guest:
      self = .answer(event.myStatus, plusOnes: event.myPlusOnes)
    case (.answer, .answer), (.setAnswer, .answer), (.editEvent(_, _, nil), .event), (.editProfile, .profile),
      (.setPicture, .profile), (.removePicture, .profile),
      (.setPreferences, .preferences):
      guard let whole = Basis(state) else { return nil }
      self = whole
      guard case .members(let all, let tag) = whole else { return }
      self = .members(
        Dictionary(uniqueKeysWithValues: write.members.keys.map { ($0, all[$0] ?? .null) }), of: tag)
    default: return nil
    }
  }

  /// This basis after an earlier write of the same object. What both change is as in the basis of the earlier one: before
  /// that is sent, the state that the user saw first, and then the state in its response.
  func after(_ earlier: Write, withBasis basis: Basis) -> Basis {
    guard case .members(var own, _) = self, case .members(let now, let tag) = basis else { return basis }
    for name in earlier.members.keys where own[name] != nil { own[name] = now[name] ?? .null }
    let isOfOneState = own.allSatisfy { $0.value == now[$0.key] ?? .null }
    return .members(own, of: isOfOneState ? tag : nil)
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

  var version: Int? { if case .members(_, .version(let version)?) = self { version } else { nil } }

  var eTag: String? { if case .copy(let eTag) = self { eTag } else { nil } }

  var stamp: Stamp? { if case .members(_, .stamp(let stamp)?) = self { stamp } else { nil } }

  var needsReading: Bool { if case .members(_, nil) = self { true } else { false } }
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
  /// An object whose values writes set. Of two writes of the same object, the later one is based on the earlier one.
  enum Target: Hashable {
    case answer(Event.ID)
    case answerOf(Guest.ID, Event.ID)
    case event(Event.ID)
    case profile, preferences
  }

  var target: Target? {
    switch self {
    case .answer(_, let id, _): .answer(id)
    case .setAnswer(_, let guest, let id): .answerOf(guest.id, id)
    case .createEvent(_, let id), .editEvent(let id, _, _): .event(id)
    case .editProfile, .setPicture, .removePicture: .profile
    case .setPreferences: .preferences
    default: nil
    }
  }

  /// Whether a response has what the write has made of its basis. Otherwise the same stood there already, and the user
  /// has not seen what came with it from elsewhere.
  func hasMade(_ state: NewerState, onTopOf basis: Basis?) -> Bool {
    switch (self, state) {
    case (.answer(let answer, _, let plusOnes), .answer(let status, let now)):
      Party(status: status, plusOnes: now).isResult(of: answer, bringing: plusOnes ?? basis?.party?.plusOnes)
    // Hosts leave the number as it is.
    case (.setAnswer(let answer, _, _), .answer(let status, let now)):
      Party(status: status, plusOnes: now).isResult(of: answer, bringing: basis?.party?.plusOnes)
    // A creation that is repeated returns the event as it is.
    case (.createEvent, .event(let event)): event.version == 1
    default: true
    }
  }

  /// The basis of later writes after one whose response has no object.
  var ownResult: Basis? { if case .removePicture = self { .members(members, of: nil) } else { nil } }

  /// The members that a write sets, as JSON.
  fileprivate var members: [String: JSONValue] {
    let json =
      switch self {
      case .createEvent(let draft, _): try? JSONValue(encoding: draft)
      case .editEvent(_, let edit, _): try? JSONValue(encoding: edit)
      case .editProfile(let edit): try? JSONValue(encoding: edit)
      // The service makes its address.
      case .setPicture: JSONValue.object(["pictureUrl": .string("")])
      case .removePicture: JSONValue.object(["pictureUrl": .null])
      // Without the stamp.
      case .setPreferences(let new): try? JSONValue(encoding: NotificationPreferences(new.choices))
      default: JSONValue?.none
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
    case .editProfile, .setPicture, .removePicture: .profile(try await client.me.get())
    case .approve(_, let id): .event(try await client.events.get(id, includeGuests: true))
    case .setPreferences: .preferences(try await client.notifications.preferences())
    default: nil
    }
  }
}
