import Foundation
import Postgres

/// A refresh token of Apple's, sealed. It is good only for telling Apple that an account is gone.
struct AppleGrant: Sendable {
  private static let label = "muster apple grant"

  private let box: Sealed

  var sealed: Data { box.bytes }
  /// To which of our clients it was given.
  var clientID: String { box.note }

  init(_ refreshToken: String, clientID: String, keys: SigningKeys) throws {
    box = try Sealed(refreshToken, note: clientID, label: Self.label, keys: keys)
  }

  /// Nil unless it looks like one.
  init?(sealed: Data) {
    guard let box = Sealed(bytes: sealed) else { return nil }
    self.box = box
  }

  /// The refresh token.
  func opened(with keys: SigningKeys) throws -> String {
    try box.opened(label: Self.label, keys: keys)
  }

  /// Queues its revocation, in a row that does not say whose it was.
  var enqueueing: SQL { "INSERT INTO apple_revocations (sealed_grant) VALUES (\(sealed))" }
}
