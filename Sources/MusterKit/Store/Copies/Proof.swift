import Foundation

/// When a copy was last proved right. Kept apart from the copies, so that a validation that finds nothing new writes
/// one small file. It holds only for the copy with its stamp.
struct Proof: Codable, Sendable, Hashable {
  let stamp: Stamp
  /// When the request was sent.
  let at: Date
}
