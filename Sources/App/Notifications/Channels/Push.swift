import Foundation
import Postgres

/// A notification on its way to a device.
public struct Push: Sendable {
  /// The same at every attempt, in the inbox and in the stream.
  public let id: String
  public let type: String
  /// The subject of the push. A phone may show it in place of earlier pushes with the same subject.
  public let subject: String
  public let recipient: String
  /// JSON: `type`, `message` and ids.
  public let payload: String
  /// When the change was made.
  public let createdAt: Timestamp
  /// The number of unread notifications when the push is sent; nil unless it is for an iPhone.
  public var badge: Int?
  /// Whether the push also lets the phone's app run for a moment, so that it can validate its lists.
  public var wakesApp = false
  /// The trace of the request that caused the notification.
  var trace: Trace?

  /// The type of a push that only sets the number on an iPhone's badge. It is not a notification.
  static let badgeOnly = "badge"
}

extension Push {
  var isBadgeOnly: Bool { type == Self.badgeOnly }

  /// When the push is no longer useful. A reminder expires after an hour, when its event starts.
  var expiry: Timestamp {
    createdAt.adding(seconds: type == Notice.Kind.eventReminder.rawValue ? Event.reminderLead : 86_400)
  }

  /// How iOS presents the push. A `time-sensitive` one may break through Focus, if the app is entitled to that.
  var interruptionLevel: String {
    switch Notice.Kind(rawValue: type) {
    case .eventReminder, .eventCancelled, .sessionRevoked, .accountClaimed: "time-sensitive"
    case .friendRequest, .friendAccepted, .eventInvited, .eventUpdated, .invitationWithdrawn, .invitationAnswered,
      .waitlistPromoted, .hostOffered, .hostAdded, .answerMerged, .answerProposed, .answerSet, .answerReminder,
      .guestAnswered, .approvalRequested, nil:
      "active"
    }
  }

  /// A phone shows only the latest of the pushes with the same id. At most 64 bytes.
  var collapseID: String? {
    if isBadgeOnly { return type }
    switch Notice.Kind(rawValue: type) {
    case .eventUpdated: return "\(type):\(subject)"
    case .eventInvited, .invitationWithdrawn: return "invitation:\(subject)"
    case .invitationAnswered, .guestAnswered, .approvalRequested:
      guard case .object(let members)? = try? JSON(parsing: payload.utf8) else { return nil }
      if members["count"] != nil { return "visitors:\(subject)" }
      guard case .string(let guest)? = members["guestId"] ?? members["userId"] else { return nil }
      return "\(subject)\(guest)".replacing("-", with: "")
    case .friendRequest, .friendAccepted, .eventCancelled, .waitlistPromoted, .eventReminder, .hostOffered, .hostAdded,
      .answerMerged, .answerProposed, .answerSet, .answerReminder, .sessionRevoked, .accountClaimed, nil:
      return nil
    }
  }

  typealias Member = (name: String, value: JSON)

  /// The text that a phone shows.
  enum Text {
    case sentence(String)
    /// The app has the sentence for this key.
    case localized(key: String, args: [JSON])

    var isLocalized: Bool { if case .localized = self { true } else { false } }
  }

  private struct Content {
    let text: Text
    /// In English.
    let sentence: String
    /// The other members of the payload, sorted by name.
    let members: [Member]
  }

  private func content(for device: Device) throws -> Content {
    guard case .object(var members)? = try? JSON(parsing: payload.utf8),
      case .string(let sentence) = members.removeValue(forKey: "message")
    else { throw DeliveryFailure(description: "the payload has no message", remedy: .none) }
    var text = Text.sentence(sentence)
    let (key, args) = (members.removeValue(forKey: "locKey"), members.removeValue(forKey: "locArgs"))
    if case .string(let key)? = key, case .array(let args)? = args {
      // By the names that Apple uses, so that an app's extension finds the same ones in every push.
      _ = members.insert(.string(key), forKey: "loc-key")
      _ = members.insert(.array(args), forKey: "loc-args")
      if device.localizes {
        text = .localized(key: key, args: args)
        // For an app that lacks the sentence of a new type.
        _ = members.insert(.string(sentence), forKey: "message")
      }
    }
    return Content(
      text: text, sentence: sentence, members: members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  /// The largest push that Apple and Google accept, in bytes.
  private static let limit = 4096
  /// The members that the text is made from. A push that is too large loses them first: an app reads the event anyway.
  private static let ingredients: Set<String> = [
    "title", "actor", "start", "changes", "message", "loc-key", "loc-args",
  ]

  /// Writes a push that fits the providers' limit. A push that is too large loses the members that the text is made
  /// from, then its translation, and then the end of the sentence. The cut is between two characters.
  ///
  /// - Parameter write: writes the whole document.
  func fitting(_ device: Device, _ write: (_ text: Text, _ members: [Member]) -> JSONWriter) throws -> JSONWriter {
    let content = try content(for: device)
    let sentence = content.sentence
    let ids = content.members.filter { !Self.ingredients.contains($0.name) }
    let attempts: [(Text, [Member])] = [
      (content.text, content.members), (content.text, ids), (.sentence(sentence), ids),
    ]
    for (text, members) in attempts {
      if case let json = write(text, members), json.count <= Self.limit { return json }
    }
    func cut(to length: Int) -> JSONWriter { write(.sentence(String(sentence.prefix(length)) + "…"), ids) }
    var (kept, tooMany) = (-1, sentence.count)
    while tooMany - kept > 1 {
      let middle = (kept + tooMany) / 2
      if cut(to: middle).count <= Self.limit { kept = middle } else { tooMany = middle }
    }
    guard kept >= 0 else { throw DeliveryFailure(description: "the payload is too large", remedy: .none) }
    return cut(to: kept)
  }
}
