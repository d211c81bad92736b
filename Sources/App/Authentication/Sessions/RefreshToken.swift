import Foundation

/// The token for which a session gets new tokens: the session's id, a counter and a branch, with a MAC over them. It is
/// derived from a server key, so nothing of it is stored, and the same token can be issued again if a response was
/// lost.
struct RefreshToken: Equatable, Sendable {
  let session: Session.ID
  let counter: Int
  let branch: Int
  let kid: String

  private static let label = "mr1"

  /// `mr1.kid.content.mac`
  func signed(with keys: SigningKeys) throws -> String {
    guard let text = keys.token(Self.label, content, kid: kid) else { throw AppError.sessionEnded }
    return text
  }

  private var content: Data { Data(packing: session, Int64(counter), Int32(branch)) }

  init(session: Session.ID, counter: Int, branch: Int, kid: String) {
    self.session = session
    self.counter = counter
    self.branch = branch
    self.kid = kid
  }

  /// A token outside these ranges was never issued and has no successor.
  static let counters = 0..<Int.max
  static let branches = 0..<Int(Int32.max)

  /// Nil unless one of the keys has signed it.
  init?(_ text: String, keys: SigningKeys) {
    guard let (kid, content) = keys.read(text, Self.label),
      let (session, counter, branch) = content.unpacked(as: Session.ID.self, Int64.self, Int32.self)
    else { return nil }
    self.init(session: session, counter: Int(counter), branch: Int(branch), kid: kid)
    guard Self.counters.contains(self.counter), Self.branches.contains(self.branch) else { return nil }
  }
}
