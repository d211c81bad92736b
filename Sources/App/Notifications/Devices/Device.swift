import Foundation
import Postgres

/// What a user has registered to be told on: a phone, or a webhook.
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
  /// What the provider knows it by; a webhook's URL.
  public let token: String
  public let environment: Environment?
  /// The app's id, of an `ios` device.
  public let topic: String?
  /// What a webhook's deliveries are signed with, sealed: the current one first, then the one before while it counts.
  let sealedSecrets: [Data]
}
