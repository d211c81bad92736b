import Foundation
import Testing

@testable import MusterKit

/// The cost of showing a list again.
@MainActor @Suite struct ComparedItemsTests {
  private nonisolated static let comparisons = Guarded(0)

  /// Counts how often two are compared.
  private struct Item: Hashable, Sendable {
    let number: Int

    static func == (one: Item, other: Item) -> Bool {
      comparisons.withLock { $0 += 1 }
      return one.number == other.number
    }

    func hash(into hasher: inout Hasher) { hasher.combine(number) }
  }

  private static let state = ListState(nil, isProved: false, hasPendingWrites: false)

  @Test func `a short list is compared, and a long one only if it takes no time`() {
    for (count, most) in [(500, 500), (5000, 0)] {
      let list = StoredList<Item>()
      let items = (0..<count).map(Item.init)
      list.show(items, Self.state)
      Self.comparisons.withLock { $0 = 0 }
      // Untouched, and the same from another response.
      list.show(items, Self.state)
      #expect(Self.comparisons.withLock { $0 } == 0)
      list.show((0..<count).map(Item.init), Self.state)
      #expect(Self.comparisons.withLock { $0 } <= most)
      #expect(list.items.count == count)
    }
  }
}
