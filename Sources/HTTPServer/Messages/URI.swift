/// The target of a request, in parts: `/path?query`, or an absolute URL, as clients send it to a proxy.
public struct URI: Sendable {
  public let path: String
  /// Nil without a question mark. May be empty.
  public let query: String?

  public init(_ target: String) {
    let rest = Self.withoutAuthority(target)
    guard let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) else {
      path = rest.isEmpty ? "/" : String(rest)
      query = nil
      return
    }
    path = mark == rest.startIndex ? "/" : String(rest[..<mark])
    let query = rest[rest.utf8.index(after: mark)...]
    self.query = String(query.utf8.firstIndex(of: UInt8(ascii: "#")).map { query[..<$0] } ?? query)
  }

  /// The part after the scheme, the host and the port.
  private static func withoutAuthority(_ target: String) -> Substring {
    // A URL in the path or the query is no scheme.
    let slash = UInt8(ascii: "/")
    guard target.utf8.first != slash, let colon = target.utf8.firstIndex(where: { ":/?#".utf8.contains($0) }),
      target.utf8[colon...].starts(with: "://".utf8)
    else { return target[...] }
    let rest = target[colon...].dropFirst(3)
    let end = rest.utf8.firstIndex { $0 == slash || $0 == UInt8(ascii: "?") }
    return rest[(end ?? rest.endIndex)...]
  }

  /// The parameters in the order in which they were sent, with their values decoded. A value that is not encoded
  /// correctly stays as it is.
  public var queryParameters: [(name: String, value: String)] {
    guard let query else { return [] }
    let pairs = query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
    // Nothing follows the last separator.
    return (pairs.last?.isEmpty == true ? pairs.dropLast() : pairs[...]).map { pair in
      guard let mark = pair.firstIndex(of: UInt8(ascii: "=")) else { return (String(Substring(pair)), "") }
      let value = pair[pair.index(after: mark)...]
      return (String(Substring(pair[..<mark])), Self.decoded(value) ?? String(Substring(value)))
    }
  }

  /// The first value of a parameter.
  public func queryParameter(_ name: String) -> String? {
    query == nil ? nil : queryParameters.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// Nil unless two hexadecimal digits follow each percent sign.
  private static func decoded(_ text: Substring.UTF8View) -> String? {
    guard text.contains(UInt8(ascii: "%")) else { return String(Substring(text)) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst()?.hexDigit, let low = rest.popFirst()?.hexDigit else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension UInt8 {
  fileprivate var hexDigit: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
