import Postgres

/// All of a collection, as a validation hands it out: what its GET sends, page after page, and the stamp of the same
/// snapshot.
struct Snapshot: Sendable {
  /// In bytes of JSON. What is longer is read page by page.
  static let maximumLength = 64 << 10

  let stamp: Timestamp?
  /// A JSON array; nil if it would be too long.
  let items: [UInt8]?

  init<Item>(_ list: List<Item>, item: (Item) -> some JSONWritable) {
    stamp = list.stamp
    items = list.next == nil ? Self.array(list.items, item) : nil
  }

  /// A single object is an array of one.
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
