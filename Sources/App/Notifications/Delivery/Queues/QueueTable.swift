import Postgres

/// A table of rows that workers process, as an operator sees it.
public enum QueueTable: String, CaseIterable, Sendable {
  /// Notices that wait for fan-out.
  case notices
  case deliveries
  case mails
  case revocations

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

  var device: SQL { self == .deliveries ? "q.device_id" : "NULL::uuid" }

  /// The assignments that reset a row for a retry. Except for notices, they also make the row new: otherwise it would
  /// be given up again for its age, and providers would not keep it for a phone.
  var reset: SQL {
    self == .notices ? "failures = 0" : "created_at = now(), due_at = now(), attempts = 0, deaths = 0"
  }
}
