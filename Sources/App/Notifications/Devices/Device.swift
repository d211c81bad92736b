import Foundation
import Postgres

/// A phone or a webhook that a user has registered for notifications.
public struct Device: Sendable {
  public typealias ID = Identifier<Device>

  public enum Platform: String, CaseIterable, Sendable, SQLValue {
    case ios, android, webhook, log
  }

  /// Which of Apple's two services knows the token.
  public enum Environment: String, CaseIterable, Sendable, SQLValue {
    case production, sandbox
  }

  public let id: ID
  public let platform: Platform
  /// The provider's name for the device; a webhook's URL.
  public let token: String
  public let environment: Environment?
  /// The app's id, for an `ios` device.
  public let topic: String?
  /// Whether the app has the sentences of notifications in the user's language.
  public var localizes = false
  /// When an app last registered the token.
  public let registeredAt: Timestamp
  /// The secrets that sign a webhook's deliveries, sealed: the current one first, then the previous one while it is
  /// valid.
  let sealedSecrets: [Data]
}
