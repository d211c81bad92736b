import Foundation
import Postgres

/// The part of a collection that a phone lacks. The phone has items by key, each with its digest. It gets the keys of
/// the list as it is now, in order, and the items that it does not have in this form:
///
///     items = keys.map { changed[$0]?.item ?? held[$0]! }
///
/// So the server keeps nothing about phones, and deleted items need no mark.
struct Delta: Sendable {
  /// Items of one list. A phone reads the rest page by page.
  static let maximumItems = 500
  /// In bytes of JSON. With longer items, a delta has fewer of them, which bounds the work for one request.
  static let maximumLength = 1 << 20
  /// For all collections of a response together, in bytes of JSON.
  static let maximumChanged = 256 << 10
  /// The bytes around the key, the digest and the item.
  private static let frame = #","":{"digest":"","item":}"#.utf8.count

  let keys: [String]
  /// A JSON object.
  let changed: [UInt8]
  /// The keys of items that the phone lacks, and that are not in `changed` because the response would be too long. Nil if
  /// there are none.
  let missing: [String]?
  let next: Cursor?

  /// - Parameters:
  ///   - list: the first items of the collection.
  ///   - held: the digests of the phone's items, by key.
  ///   - share: the most bytes of changed items.
  ///   - room: the most bytes of the first changed item, so that an item larger than a share is also sent.
  init(_ list: Collection.Items, held: JSON.Object?, digests: ItemDigests, share: Int, room: Int) {
    var (share, room) = (share, room)
    var keys: [String] = []
    var missing: [String] = []
    var length = 0
    var next = list.next
    var item = JSONWriter()
    var changed = JSONWriter()
    changed.object { changed in
      for (index, value) in list.items.enumerated() {
        if length >= Self.maximumLength {
          next = list.cursor(after: index - 1)
          break
        }
        item.clear()
        value.write(to: &item)
        length += item.count
        let key = list.key(at: index)
        keys.append(key)
        let digest = item.withBytes { digests.digest(of: $0) }
        if Self.holds(digest, key, held) { continue }
        let size = Self.frame + key.utf8.count + digest.utf8.count + item.count
        guard size <= max(share, room) else {
          missing.append(key)
          continue
        }
        share -= size
        room = 0
        changed.member(name: key) { json in
          item.withBytes { json.changedItem(digest: digest, item: WrittenJSON(bytes: $0)) }
        }
      }
    }
    self.keys = keys
    self.changed = changed.bytes
    self.missing = missing.isEmpty ? nil : missing
    self.next = next
  }

  /// A value that is not a digest matches no item.
  private static func holds(_ digest: String, _ key: String, _ held: JSON.Object?) -> Bool {
    // Some clients print ids in upper case.
    guard let held, case .string(let text)? = held[key] ?? held[key.uppercased()] else { return false }
    return text.hasSameBytes(as: digest)
  }
}

extension Collection.Items {
  /// Of an item in a list, the id in its place: its own id, or that of the user or event that it is about.
  fileprivate func key(at index: Int) -> String {
    places.isEmpty ? "me" : places[index].id.uuidString.lowercased()
  }
}
