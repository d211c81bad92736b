extension JSON {
  /// An object's members in document order. Names are compared by their UTF-8 bytes: a dictionary keyed by `String`
  /// normalizes each name that it hashes or compares, which takes seconds for tens of thousands of combining marks.
  struct Object: Sendable {
    private var members: [(key: String, value: JSON)] = []
    /// The members' indexes by name, if there are more than ``fewest``.
    private var places: [Name: Int] = [:]

    /// Up to this many names are searched one by one, which is faster than hashing.
    private static let fewest = 8

    var keys: [String] { members.map(\.key) }

    subscript(name: String) -> JSON? { place(of: name).map { members[$0].value } }

    /// - Returns: false, without a change, if the object already has a member of this name.
    mutating func insert(_ value: JSON, forKey name: String) -> Bool {
      guard place(of: name) == nil else { return false }
      members.append((name, value))
      if members.count > Self.fewest + 1 {
        places[Name(text: name)] = members.count - 1
      } else if members.count > Self.fewest {
        for (place, member) in members.enumerated() { places[Name(text: member.key)] = place }
      }
      return true
    }

    /// - Returns: nil if there was no such member.
    mutating func removeValue(forKey name: String) -> JSON? {
      guard let place = place(of: name) else { return nil }
      let value = members[place].value
      let rest = members
      self = Object()
      for (index, member) in rest.enumerated() where index != place { _ = insert(member.value, forKey: member.key) }
      return value
    }

    private func place(of name: String) -> Int? {
      members.count > Self.fewest
        ? places[Name(text: name)] : members.firstIndex { $0.key.hasSameBytes(as: name) }
    }

    private struct Name: Hashable {
      let text: String

      static func == (left: Name, right: Name) -> Bool { left.text.hasSameBytes(as: right.text) }

      func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
      }
    }
  }
}

extension JSON.Object: Sequence {
  func makeIterator() -> IndexingIterator<[(key: String, value: JSON)]> { members.makeIterator() }

  var isEmpty: Bool { members.isEmpty }
  var count: Int { members.count }
}

extension JSON.Object: Equatable {
  /// The order of members does not matter.
  static func == (left: Self, right: Self) -> Bool {
    left.count == right.count && left.allSatisfy { right[$0.key] == $0.value }
  }
}

extension JSON.Object: ExpressibleByDictionaryLiteral {
  init(dictionaryLiteral elements: (String, JSON)...) {
    for (name, value) in elements {
      precondition(insert(value, forKey: name), "duplicate name")
    }
  }
}

extension JSON: Equatable {
  static func == (left: JSON, right: JSON) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.bool(let left), .bool(let right)): left == right
    case (.number(let left), .number(let right)), (.string(let left), .string(let right)):
      left.hasSameBytes(as: right)
    case (.array(let left), .array(let right)): left == right
    case (.object(let left), .object(let right)): left == right
    case (.null, _), (.bool, _), (.number, _), (.string, _), (.array, _), (.object, _): false
    }
  }
}

extension String {
  /// Compares the bytes. `==` normalizes both texts, which takes quadratic time for a run of combining marks.
  func hasSameBytes(as other: String) -> Bool {
    utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
  }

  /// Whether hashing and comparing the text takes linear time.
  var isASCII: Bool {
    // Without an early exit, many bytes are compared at once.
    utf8.withContiguousStorageIfAvailable { $0.reduce(0) { $0 | $1 } < 0x80 } ?? utf8.allSatisfy { $0 < 0x80 }
  }
}
