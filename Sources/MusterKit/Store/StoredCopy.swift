import Foundation

/// A list as the service sent it: items, digests and stamp of the same responses.
struct StoredCopy: Sendable, Hashable {
  struct Entry: Sendable, Hashable {
    /// The key of the item in validations.
    let key: String
    /// Opaque.
    let digest: String
    /// The item as the service sent it, even if this version of the app cannot decode it.
    let json: Data
  }

  /// The name of the collection, or ``PastUpdate/list``.
  let list: String
  /// The service's own text, unchanged. It belongs to these entries and to no others. Past events have none from the
  /// service: the store makes one.
  let stamp: Stamp
  /// In the order of the list.
  var entries: [Entry]
  /// Where the list continues after the entries; nil if they are the whole list.
  var nextCursor: String?
  /// When the request was sent whose response proved this copy right.
  var provedAt: Date

  init(list: String, stamp: Stamp, entries: [Entry], nextCursor: String? = nil, provedAt: Date) {
    self.list = list
    self.stamp = stamp
    self.entries = entries
    self.nextCursor = nextCursor
    self.provedAt = provedAt
  }

  init(
    collection: CacheCollection, stamp: Stamp, entries: [Entry], nextCursor: String? = nil, provedAt: Date
  ) {
    self.init(
      list: collection.rawValue, stamp: stamp, entries: entries, nextCursor: nextCursor, provedAt: provedAt)
  }
}

extension StoredCopy.Entry {
  /// - Returns: nil if key or digest cannot stand in a file of copies, or if the item cannot be written as JSON.
  init?(key: String, digest: String, item: JSONValue) {
    guard Self.isWord(key), Self.isWord(digest), let json = try? JSONEncoder.muster().encode(item) else { return nil }
    self.init(key: key, digest: digest, json: json)
  }

  /// The items that the service compares by their digests: with any other text, it would refuse the claim.
  var isClaimable: Bool { digest.utf8.count == Self.digestLength && digest.utf8.allSatisfy(Self.digestBytes.contains) }

  /// In characters.
  private static let digestLength = 11
  private static let digestBytes = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// The items of the parts of a list.
  ///
  /// - Parameters:
  ///   - claimed: the items that the claim said the app holds.
  ///   - collection: whose items these are.
  /// - Returns: nil if a part is not understood.
  static func all(
    in parts: [ListPart], claimed: ArraySlice<Self>, of collection: CacheCollection
  ) -> [Self]? {
    var entries: [Self] = []
    for part in parts {
      if let item = part.item, let digest = part.digest {
        guard let key = collection.key(of: item), let entry = Self(key: key, digest: digest, item: item)
        else { return nil }
        entries.append(entry)
      } else {
        guard let first = part.first, let count = part.count, first >= 0, count > 0, first < claimed.count,
          count <= claimed.count - first
        else { return nil }
        entries += claimed[first..<first + count]
      }
    }
    return entries
  }

  private static func isWord(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
  }
}

/// The file of a copy. The first line is a checksum of the rest. The second one is a JSON object. Each further line is
/// an item: its key, its digest and its JSON, separated by tabs.
///
/// One file, replaced atomically, has the items, their digests and their stamp, so that they always belong together.
extension StoredCopy {
  /// A file with another number does not count as a copy.
  private static let format = 1
  private static let newline = UInt8(ascii: "\n")
  private static let tab = UInt8(ascii: "\t")

  private struct Header: Codable {
    var format: Int
    var user: User.ID
    var collection: String
    var stamp: Stamp
    var nextCursor: String?
    var provedAt: Date
    var count: Int
  }

  func file(of user: User.ID) throws -> Data {
    let header = Header(
      format: Self.format, user: user, collection: list, stamp: stamp, nextCursor: nextCursor,
      provedAt: provedAt, count: entries.count)
    var text = [UInt8](try JSONEncoder().encode(header))
    text.reserveCapacity(entries.reduce(text.count) { $0 + $1.json.count + 64 })
    text.append(Self.newline)
    for entry in entries {
      text += entry.key.utf8
      text.append(Self.tab)
      text += entry.digest.utf8
      text.append(Self.tab)
      text += entry.json
      text.append(Self.newline)
    }
    return Data(Self.checksum(text[...]).utf8) + [Self.newline] + text
  }

  /// - Returns: nil if the file is damaged, has another format, or belongs to another user or list.
  init?(file: Data, of collection: CacheCollection, user: User.ID) {
    self.init(file: file, of: collection.rawValue, user: user)
  }

  init?(file: Data, of list: String, user: User.ID) {
    let bytes = [UInt8](file)
    guard let end = bytes.firstIndex(of: Self.newline) else { return nil }
    let text = bytes[(end + 1)...]
    guard Self.checksum(text).utf8.elementsEqual(bytes[..<end]) else { return nil }
    let lines = text.split(separator: Self.newline)
    guard let first = lines.first, let header = try? JSONDecoder().decode(Header.self, from: Data(first)),
      header.format == Self.format, header.user == user, header.collection == list,
      header.count == lines.count - 1
    else { return nil }
    var entries: [Entry] = []
    entries.reserveCapacity(header.count)
    for line in lines.dropFirst() {
      let parts = line.split(separator: Self.tab, maxSplits: 2)
      guard parts.count == 3 else { return nil }
      entries.append(
        Entry(
          key: String(decoding: parts[0], as: UTF8.self), digest: String(decoding: parts[1], as: UTF8.self),
          json: Data(parts[2])))
    }
    self.init(
      list: list, stamp: header.stamp, entries: entries, nextCursor: header.nextCursor,
      provedAt: header.provedAt)
  }

  /// FNV-1a. Finds damage, not forgery.
  private static func checksum(_ bytes: ArraySlice<UInt8>) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return String(hash, radix: 16)
  }
}

/// A list's claims about its copy.
struct CopyStatus: Sendable, Hashable {
  let stamp: Stamp
  let provedAt: Date
  /// The number of the request that proved the copy right. Later requests have higher numbers.
  let provedBy: Int
  /// The number of items.
  let count: Int
  /// Where the service has further items after those of the copy.
  let nextCursor: String?
  let undecodable: UndecodableItems?

  var hasMore: Bool { nextCursor != nil }

  init(_ copy: StoredCopy, provedBy request: Int, undecodable: UndecodableItems?) {
    self.undecodable = undecodable
    provedBy = request
    stamp = copy.stamp
    provedAt = copy.provedAt
    count = copy.entries.count
    nextCursor = copy.nextCursor
  }
}
