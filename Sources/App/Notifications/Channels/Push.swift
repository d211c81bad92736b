import Foundation
import Postgres

/// A notification on its way to a device.
public struct Push: Sendable {
  /// The same at every attempt, in the inbox and in the stream.
  public let id: String
  public let type: String
  /// What the push is about. A phone may show it in place of earlier pushes with the same subject.
  public let subject: String
  public let recipient: String
  /// JSON: `type`, `message` and ids.
  public let payload: String
  /// When the change was made.
  public let createdAt: Timestamp
  /// The number of unread notifications when the push is sent; nil unless it is for an iPhone.
  public var badge: Int?
  /// The trace of the request that caused the notification.
  var trace: Trace?
}

extension Push {
  /// When the push is no longer useful. A reminder expires after an hour, when its event starts.
  var expiry: Timestamp {
    createdAt.adding(seconds: type == Notice.Kind.eventReminder.rawValue ? Event.reminderLead : 86_400)
  }

  /// How iOS presents the push. A `time-sensitive` one may break through Focus, if the app is entitled to that.
  var interruptionLevel: String {
    switch Notice.Kind(rawValue: type) {
    case .eventReminder, .eventCancelled, .sessionRevoked: "time-sensitive"
    default: "active"
    }
  }

  /// A phone shows only the latest of the pushes with the same id. At most 64 bytes.
  var collapseID: String? {
    switch Notice.Kind(rawValue: type) {
    case .eventUpdated: return "\(type):\(subject)"
    case .eventInvited, .invitationWithdrawn: return "invitation:\(subject)"
    case .invitationAnswered:
      guard case .object(let members)? = try? JSON(parsing: payload.utf8), case .string(let guest)? = members["userId"]
      else { return nil }
      return "\(subject)\(guest)".replacing("-", with: "")
    default: return nil
    }
  }

  typealias Member = (name: String, value: JSON)

  /// The sentence to show, and the other members of the payload, sorted by name.
  func content() throws -> (message: String, members: [Member]) {
    guard case .object(var members)? = try? JSON(parsing: payload.utf8),
      case .string(let message) = members.removeValue(forKey: "message")
    else { throw DeliveryFailure(description: "the payload has no message", remedy: .none) }
    return (message, members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  /// The largest push that Apple and Google accept, in bytes.
  private static let limit = 4096
  /// The members that the message is made from. A push that is too large loses them first: an app reads the event
  /// anyway.
  private static let ingredients: Set<String> = ["title", "actor", "start", "changes"]

  /// Writes a push that fits the providers' limit. A push that is too large loses the members that the message is made
  /// from, and then the end of the message. The cut is between two characters.
  ///
  /// - Parameter write: writes the whole document.
  static func fitting(
    _ message: String, _ members: [Member], _ write: (_ message: String, _ members: [Member]) -> JSONWriter
  ) throws -> JSONWriter {
    let whole = write(message, members)
    if whole.count <= limit { return whole }
    let ids = members.filter { !ingredients.contains($0.name) }
    if case let shorter = write(message, ids), shorter.count <= limit { return shorter }
    var (kept, tooMany) = (-1, message.count)
    while tooMany - kept > 1 {
      let middle = (kept + tooMany) / 2
      if write(String(message.prefix(middle)) + "…", ids).count <= limit { kept = middle } else { tooMany = middle }
    }
    guard kept >= 0 else { throw DeliveryFailure(description: "the payload is too large", remedy: .none) }
    return write(String(message.prefix(kept)) + "…", ids)
  }
}
