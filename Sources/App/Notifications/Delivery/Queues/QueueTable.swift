import Postgres

/// A table of rows that workers process, as an operator sees it.
public enum QueueTable: String, CaseIterable, Sendable {
  /// Notices that wait for fan-out.
  case notices
  case deliveries
  case mails
  case revocations

  /// The types of all rows, in order.
  public static let types =
    (Notice.Kind.allCases.map(\.rawValue) + Mail.types + [Push.badgeOnly, "apple-revocation"]).sorted()

  /// Its name in the database.
  var table: SQL { "\(unescaped: rawTable)" }

  var rawTable: String {
    switch self {
    case .notices: "notification_queue"
    case .deliveries: "deliveries"
    case .mails: "mails"
    case .revocations: "apple_revocations"
    }
  }

  /// The type of the row `q`.
  var type: SQL { self == .revocations ? "'apple-revocation'" : "q.type" }
  /// The channel of the row `q`, as metrics name it. A delivery's is the platform of its device `d`.
  var channel: SQL {
    switch self {
    case .notices: "'fan-out'"
    case .deliveries: "d.platform"
    case .mails: "'mail'"
    case .revocations: "'apple'"
    }
  }
  var dueAt: SQL { self == .notices ? "q.created_at" : "q.due_at" }
  var attempts: SQL { self == .notices ? "q.failures" : "q.attempts" }
  var isInFlight: SQL { self == .notices ? "false" : "(q.leased_until > now()) IS TRUE" }

  var recipient: SQL {
    switch self {
    case .deliveries: "q.recipient_id"
    case .mails: "q.user_id"
    case .notices, .revocations: "NULL::uuid"
    }
  }

  /// Whether the row is for a user.
  func concerns(_ user: User.ID) -> SQL {
    self == .notices ? "q.recipient_ids @> ARRAY[\(user)]" : "(\(recipient) = \(user)) IS TRUE"
  }

  /// Whether the row waits for a later attempt, or behind a row that does. The pauses between badges are no failures.
  var waitsAfterFailure: SQL {
    switch self {
    case .notices: "false"
    case .deliveries: "(q.due_at > now() AND NOT \(isInFlight) AND q.type <> \(Push.badgeOnly))"
    case .mails, .revocations: "(q.due_at > now() AND NOT \(isInFlight) AND q.attempts > 0)"
    }
  }

  var device: SQL { self == .deliveries ? "q.device_id" : "NULL::uuid" }

  /// The assignments that reset a row for a retry. Except for notices, they also make the row new: otherwise it would
  /// be given up again for its age, and providers would not keep it for a phone.
  var reset: SQL {
    self == .notices ? "failures = 0" : "created_at = now(), due_at = now(), attempts = 0, deaths = 0"
  }
}
