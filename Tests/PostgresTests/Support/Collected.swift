import Postgres

/// Values collected from several tasks.
final class Collected<Element: Sendable>: Sendable {
  private let elements = Lock<[Element]>([])

  func append(_ element: Element) {
    elements.withLock { $0.append(element) }
  }

  var all: [Element] { elements.withLock { $0 } }
  var count: Int { elements.withLock { $0.count } }
}
