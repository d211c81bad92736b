import Postgres

/// A claim about a copy, as a phone sends it: the digests of its items, in the copy's order, and the part of the list
/// that it asks for.
struct HeldItems: Sendable {
  static let limits = 1...2000
  /// Without a `limit`.
  private static let usualLimit = 500

  /// The places of the items, by their digests.
  private let places: [ItemDigest: Int]
  let page: PageRequest

  /// Reads a claim about a list that the server knows.
  ///
  /// - Returns: nil if it has none of the members.
  init?(_ claim: JSON.Object, of list: ClaimedList, _ errors: inout [FieldError]) {
    var fields = Fields(claim, prefix: "\(list.name).")
    let held = fields.optional("held", Self.digests)
    let limit = fields.optional("limit", .integer(Self.limits))
    let cursor = fields.optional("cursor", Self.cursor(of: list))
    errors += fields.errors
    guard held != nil || limit != nil || cursor != nil else { return nil }
    places = held ?? [:]
    page = PageRequest(limit: limit ?? Self.usualLimit, cursor: cursor ?? nil)
  }

  /// The part to read: at most 500 items more than the phone claims to hold, so that a short request never makes the
  /// service read a long list.
  var boundedPage: PageRequest {
    var bounded = page
    bounded.limit = min(page.limit, places.count + Self.usualLimit)
    return bounded
  }

  private static var digests: Fields.Rule<[ItemDigest: Int]> {
    Fields.Rule(placeholder: [:]) { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken.wrongType("a string", json) }
      guard let places = places(in: Array(text.utf8)) else {
        throw Fields.Broken(
          .badFormat, "must be at most \(limits.upperBound) digests of \(ItemDigest.length) characters, joined")
      }
      return places
    }
  }

  /// - Returns: nil if the text is not made of digests.
  private static func places(in text: [UInt8]) -> [ItemDigest: Int]? {
    let count = text.count / ItemDigest.length
    guard text.count == count * ItemDigest.length, count <= limits.upperBound else { return nil }
    var places: [ItemDigest: Int] = [:]
    places.reserveCapacity(count)
    for place in 0..<count {
      let start = place * ItemDigest.length
      guard let digest = ItemDigest(text[start..<start + ItemDigest.length]) else { return nil }
      places[digest] = place
    }
    return places
  }

  private static func cursor(of list: ClaimedList) -> Fields.Rule<Cursor?> {
    Fields.Rule(placeholder: nil) { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken.wrongType("a string", json) }
      guard let cursor = Cursor(text), cursor.list == list.cursors else {
        throw Fields.Broken(.badFormat, "must be the nextCursor of a verdict on this collection")
      }
      return cursor
    }
  }

  func place(of digest: ItemDigest) -> Int? { places[digest] }
}

/// A part of a collection in the terms of a phone's copy, in the order of the list: runs of items that the phone holds,
/// and between them the items that it lacks. So the phone needs no keys, and a long list costs few bytes:
///
///     items = parts.flatMap { $0.item.map { [$0] } ?? held[$0.first..<($0.first + $0.count)] }
///
/// It ends where a limit is reached, and the list continues at `next`.
struct ListParts: Sendable {
  enum Part: Sendable {
    /// The places of items in ``HeldItems``.
    case held(Range<Int>)
    /// - Parameter json: the item.
    case new(ItemDigest, json: [UInt8])
  }

  /// Bytes of JSON.
  struct Size: Sendable {
    /// Of the items that are compared with the phone's digests.
    var compared: Int
    /// Of those that the phone lacks.
    var new: Int

    /// For all collections of a response together. A list has at most ``Delta/maximumLength`` of compared items:
    /// a change of one of 1,000 live events, which moves two lists, takes at most 3 requests if the items have up to
    /// about 2 KB.
    static let maximum = Size(compared: 2 << 20, new: Delta.maximumChanged)
  }

  /// The bytes around an item.
  private static let frame = #"{"digest":"","item":},"#.utf8.count + ItemDigest.length

  private(set) var parts: [Part] = []
  private(set) var next: Cursor?
  private(set) var size = Size(compared: 0, new: 0)

  /// - Parameters:
  ///   - list: the items from the claim's cursor.
  ///   - share: the most that these parts may have. The first item may exceed it, so that each request makes progress.
  init(_ list: Collection.Items, held: HeldItems, digests: ItemDigests, share: Size) {
    next = list.next
    let mostCompared = min(share.compared, Delta.maximumLength)
    var item = JSONWriter()
    for (index, value) in list.items.enumerated() {
      item.clear()
      value.write(to: &item)
      let digest = item.withBytes { digests.hash(of: $0) }
      let place = held.place(of: digest)
      let new = place == nil ? item.count + Self.frame : 0
      guard index == 0 || (size.compared + item.count <= mostCompared && size.new + new <= share.new) else {
        next = list.cursor(after: index - 1)
        return
      }
      size.compared += item.count
      size.new += new
      if let place {
        add(place)
      } else {
        parts.append(.new(digest, json: item.bytes))
      }
    }
  }

  /// Adds an item that the phone holds, to the run before it if the phone has them in the same order.
  private mutating func add(_ place: Int) {
    if case .held(let run)? = parts.last, run.upperBound == place {
      parts[parts.count - 1] = .held(run.lowerBound..<place + 1)
    } else {
      parts.append(.held(place..<place + 1))
    }
  }
}

extension ListParts.Part: JSONWritable {
  func write(to json: inout JSONWriter) {
    switch self {
    case .held(let places):
      json.listPart(first: places.lowerBound, count: places.count, digest: nil, item: WrittenJSON<[UInt8]>?.none)
    case .new(let digest, let item):
      json.listPart(first: nil, count: nil, digest: digest.text, item: WrittenJSON(bytes: item))
    }
  }
}
