import Foundation
import Postgres

/// A notification on its way to a device.
public struct Push: Sendable {
  /// The same at every attempt, in the inbox and in the stream.
  public let id: String
  public let type: String
  /// What it is about: what is shown of the same subject before may be replaced.
  public let subject: String
  public let recipient: String
  /// JSON: `type`, `message` and ids.
  public let payload: String
  /// When the change was made.
  public let createdAt: Timestamp
}

extension Push {
  /// When nobody needs it any more. A reminder tells of what is an hour ahead.
  var expiry: Timestamp {
    createdAt.adding(seconds: type == Notice.Kind.eventReminder.rawValue ? Event.reminderLead : 86_400)
  }

  /// Of the pushes with the same one, a phone shows the latest only. At most 64 bytes.
  var collapseID: String? { type == Notice.Kind.eventUpdated.rawValue ? "\(type):\(subject)" : nil }

  /// The sentence to show, and all else in its payload, in the order of the names.
  func content() throws -> (message: String, members: [(name: String, value: JSON)]) {
    guard case .object(var members)? = try? JSON(parsing: payload.utf8),
      case .string(let message) = members.removeValue(forKey: "message")
    else { throw DeliveryFailure(description: "the payload has no message", remedy: .none) }
    return (message, members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  /// The most that Apple and Google take in one push, in bytes.
  private static let limit = 4096

  /// Writes it with as much of a message as they take, cut between two characters.
  ///
  /// - Parameter write: makes the whole document, with the message that it is given.
  static func fitting(_ message: String, _ write: (_ message: String) -> JSONWriter) throws -> JSONWriter {
    let whole = write(message)
    if whole.count <= limit { return whole }
    var (kept, tooMany) = (-1, message.count)
    while tooMany - kept > 1 {
      let middle = (kept + tooMany) / 2
      if write(String(message.prefix(middle)) + "…").count <= limit { kept = middle } else { tooMany = middle }
    }
    guard kept >= 0 else { throw DeliveryFailure(description: "the payload is too large", remedy: .none) }
    return write(String(message.prefix(kept)) + "…")
  }
}
