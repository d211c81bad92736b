import Foundation
import Postgres

/// A sealed refresh token from Apple. Its only use is to tell Apple that an account is gone.
struct AppleGrant: Sendable {
  private static let label = "muster apple grant"

  private let box: Sealed

  var sealed: Data { box.bytes }
  /// The one of our clients that it was given to.
  var clientID: String { box.note }

  init(_ refreshToken: String, clientID: String, keys: SigningKeys) throws {
    box = try Sealed(refreshToken, note: clientID, label: Self.label, keys: keys)
  }

  /// Nil unless the bytes have the form of a grant.
  init?(sealed: Data) {
    guard let box = Sealed(bytes: sealed) else { return nil }
    self.box = box
  }

  /// Decrypts the refresh token.
  func opened(with keys: SigningKeys) throws -> String {
    try box.opened(label: Self.label, keys: keys)
  }

  /// Queues its revocation, in a row that does not name the user.
  var enqueueing: SQL { "INSERT INTO apple_revocations (sealed_grant) VALUES (\(sealed))" }
}
