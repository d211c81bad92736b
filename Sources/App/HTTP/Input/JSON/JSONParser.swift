struct JSONParser {
  let bytes: [UInt8]
  var position = 0

  init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  mutating func document() throws(JSON.Malformed) -> JSON {
    let value = try value(depth: 0)
    skipSpace()
    guard position == bytes.count else { throw malformed("unexpected text after the document") }
    return value
  }

  private func malformed(_ what: String) -> JSON.Malformed {
    JSON.Malformed(message: "Invalid JSON: \(what) at byte \(position).")
  }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { position += 1 }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func value(depth: Int) throws(JSON.Malformed) -> JSON {
    skipSpace()
    if next == UInt8(ascii: "{") || next == UInt8(ascii: "["), depth == JSON.maximumDepth {
      throw malformed("more than \(JSON.maximumDepth) levels of nesting")
    }
    switch next {
    case UInt8(ascii: "{"): return .object(try object(depth: depth + 1))
    case UInt8(ascii: "["): return .array(try array(depth: depth + 1))
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case nil: throw malformed("unexpected end")
    case let byte? where byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte): return .number(try number())
    default: throw malformed("missing value")
    }
  }

  private mutating func word(_ word: StaticString, _ value: JSON) throws(JSON.Malformed) -> JSON {
    let length = word.utf8CodeUnitCount
    let isHere =
      bytes.count - position >= length
      && word.withUTF8Buffer { $0.elementsEqual(bytes[position..<position + length]) }
    guard isHere else { throw malformed("missing value") }
    position += length
    return value
  }

  private mutating func object(depth: Int) throws(JSON.Malformed) -> JSON.Object {
    position += 1
    var members: JSON.Object = [:]
    skipSpace()
    if take("}") { return members }
    repeat {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw malformed("missing key") }
      let key = try string()
      skipSpace()
      guard take(":") else { throw malformed("missing colon") }
      let value = try value(depth: depth)
      guard members.insert(value, forKey: key) else { throw malformed("duplicate key") }
      skipSpace()
    } while take(",")
    guard take("}") else { throw malformed("missing comma or closing brace") }
    return members
  }

  private mutating func array(depth: Int) throws(JSON.Malformed) -> [JSON] {
    position += 1
    var elements: [JSON] = []
    skipSpace()
    if take("]") { return elements }
    repeat {
      elements.append(try value(depth: depth))
      skipSpace()
    } while take(",")
    guard take("]") else { throw malformed("missing comma or closing bracket") }
    return elements
  }

  private mutating func number() throws(JSON.Malformed) -> String {
    let start = position
    func digits(_ parser: inout JSONParser) -> Int {
      let first = parser.position
      while let byte = parser.next, (0x30...0x39).contains(byte) { parser.position += 1 }
      return parser.position - first
    }
    _ = take("-")
    let hasLeadingZero = next == 0x30
    let count = digits(&self)
    guard count > 0, !(hasLeadingZero && count > 1) else { throw malformed("malformed number") }
    if take(".") {
      guard digits(&self) > 0 else { throw malformed("malformed number") }
    }
    if take("e") || take("E") {
      if !take("-") { _ = take("+") }
      guard digits(&self) > 0 else { throw malformed("malformed number") }
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func string() throws(JSON.Malformed) -> String {
    position += 1
    let start = position
    while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 { position += 1 }
    if next == UInt8(ascii: "\"") {
      defer { position += 1 }
      return try text(bytes[start..<position])
    }
    var unescaped = Array(bytes[start..<position])
    while let byte = next {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return try text(unescaped[...])
      case UInt8(ascii: "\\"):
        unescaped.append(contentsOf: UTF8.encode(try escape()) ?? UTF8.encodedReplacementCharacter)
      case 0..<0x20: throw malformed("unescaped control character in a string")
      default: unescaped.append(byte)
      }
    }
    throw malformed("unterminated string")
  }

  private func text(_ utf8: ArraySlice<UInt8>) throws(JSON.Malformed) -> String {
    // `String(validating:)` takes several times as long.
    if utf8.withUnsafeBufferPointer({ $0.allSatisfy { $0 < 0x80 } }) { return String(decoding: utf8, as: UTF8.self) }
    guard let text = String(validating: utf8, as: UTF8.self) else { throw malformed("invalid UTF-8 in a string") }
    return text
  }

  private mutating func escape() throws(JSON.Malformed) -> Unicode.Scalar {
    let byte = next
    position += 1
    switch byte {
    case UInt8(ascii: "\""): return "\""
    case UInt8(ascii: "\\"): return "\\"
    case UInt8(ascii: "/"): return "/"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{c}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return try unicodeEscape()
    default: throw malformed("unknown escape")
    }
  }

  private mutating func unicodeEscape() throws(JSON.Malformed) -> Unicode.Scalar {
    var code = UInt32(try hexadecimal())
    guard code != 0 else { throw malformed("U+0000 in a string") }
    if (0xd800...0xdbff).contains(code) {
      guard take("\\"), take("u") else { throw malformed("unpaired surrogate") }
      let low = UInt32(try hexadecimal())
      guard (0xdc00...0xdfff).contains(low) else { throw malformed("unpaired surrogate") }
      code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
    }
    guard let scalar = Unicode.Scalar(code) else { throw malformed("unpaired surrogate") }
    return scalar
  }

  private mutating func hexadecimal() throws(JSON.Malformed) -> UInt16 {
    guard bytes.count - position >= 4 else { throw malformed("malformed escape") }
    var code: UInt16 = 0
    for byte in bytes[position..<position + 4] {
      switch byte {
      case 0x30...0x39: code = code << 4 | UInt16(byte - 0x30)
      case 0x41...0x46: code = code << 4 | UInt16(byte - 0x37)
      case 0x61...0x66: code = code << 4 | UInt16(byte - 0x57)
      default: throw malformed("malformed escape")
      }
    }
    position += 4
    return code
  }
}
