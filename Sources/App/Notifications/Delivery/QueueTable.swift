import Postgres

/// A table of rows to be worked off, as an operator sees it.
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

  /// Of a row, as `q`.
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

  /// What a row is given when it is retried. A row that is sent is as if it were new: it would else be given up again for
  /// its age, and providers would not keep it for a phone.
  var reset: SQL {
    self == .notices ? "failures = 0" : "created_at = now(), due_at = now(), attempts = 0, deaths = 0"
  }
}
