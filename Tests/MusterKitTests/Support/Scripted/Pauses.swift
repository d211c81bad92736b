import Foundation
import MusterKit

/// A clock that moves only when a client waits.
final class Pauses: Sendable {
  private let waits = Locked<[TimeInterval]>([])

  /// Seconds.
  var all: [TimeInterval] { waits.value }

  var sleep: @Sendable (TimeInterval) async throws -> Void {
    { seconds in
      try Task.checkCancellation()
      self.waits.change { $0.append(seconds) }
      await Task.yield()
    }
  }

  var now: @Sendable () -> TimeInterval { { self.all.reduce(0, +) } }
}
