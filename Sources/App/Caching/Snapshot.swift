import Postgres

/// A complete collection for a validation: the items of all pages of its GET.
struct Snapshot: Sendable {
  /// In bytes of JSON. Phones read a longer collection page by page.
  static let maximumLength = 64 << 10

  /// A JSON array; nil if it would be too long.
  let items: [UInt8]?
  /// One for each item, if they are wanted.
  let digests: [String]?

  init(_ list: Collection.Items, digests: ItemDigests? = nil) {
    var json = JSONWriter()
    var found: [String] = []
    var isComplete = list.next == nil
    json.raw("[")
    for (index, item) in list.items.enumerated() where isComplete {
      if index > 0 { json.raw(",") }
      let start = json.count
      item.write(to: &json)
      isComplete = json.count < Self.maximumLength
      if let digests { json.withBytes(from: start) { found.append(digests.digest(of: $0)) } }
    }
    json.raw("]")
    items = isComplete ? json.bytes : nil
    self.digests = isComplete && digests != nil ? found : nil
  }
}
