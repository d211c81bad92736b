import Foundation

/// A collection as the service sent it: items, digests and stamp of the same responses.
struct StoredCopy: Sendable, Hashable {
  struct Entry: Sendable, Hashable {
    /// The key of the item in validations.
    let key: String
    /// Opaque.
    let digest: String
    /// The item as it came, even if this version of the app cannot decode it.
    let json: Data
  }

  let collection: CacheCollection
  /// Exactly as it came. Belongs to these entries and to no others.
  let stamp: Stamp
  /// In the order of the list.
  var entries: [Entry]
  /// Where the list continues after the entries; nil if they are the whole list.
  var nextCursor: String?
  /// When the request was sent whose response proved this copy right.
  var provedAt: Date
}

extension StoredCopy.Entry {
  /// - Returns: nil if key or digest cannot stand in a file of copies, or if the item cannot be written as JSON.
  init?(key: String, digest: String, item: JSONValue) {
    guard Self.isWord(key), Self.isWord(digest), let json = try? JSONEncoder.muster().encode(item) else { return nil }
    self.init(key: key, digest: digest, json: json)
  }

  private static func isWord(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
  }
}
