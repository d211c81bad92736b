import Postgres

/// A complete collection for a validation: the items of all pages of its GET, and the stamp of the same snapshot.
struct Snapshot: Sendable {
  /// In bytes of JSON. Phones read a longer collection page by page.
  static let maximumLength = 64 << 10

  let stamp: Timestamp?
  /// A JSON array; nil if it would be too long.
  let items: [UInt8]?

  init<Item>(_ list: List<Item>, item: (Item) -> some JSONWritable) {
    stamp = list.stamp
    items = list.next == nil ? Self.array(list.items, item) : nil
  }

  /// A single object becomes an array of one element.
  init(_ object: some JSONWritable, stamp: Timestamp?) {
    self.stamp = stamp
    items = Self.array([object]) { $0 }
  }

  private static func array<Item>(_ items: [Item], _ item: (Item) -> some JSONWritable) -> [UInt8]? {
    var json = JSONWriter()
    json.raw("[")
    for (index, value) in items.enumerated() {
      if index > 0 { json.raw(",") }
      item(value).write(to: &json)
      guard json.bytes.count < maximumLength else { return nil }
    }
    json.raw("]")
    return json.bytes
  }
}
