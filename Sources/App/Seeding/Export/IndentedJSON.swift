/// JSON with a line for each member and element, so that a diff of two texts shows what has changed. Keeps the order
/// and the spelling.
struct IndentedJSON {
  private var lines: [UInt8] = []
  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  /// Whether the last byte has opened an object or array.
  private var hasOpened = false

  static func text(_ json: some Sequence<UInt8>) -> String {
    var text = IndentedJSON()
    for byte in json { text.add(byte) }
    return String(decoding: text.lines, as: UTF8.self) + "\n"
  }

  private mutating func add(_ byte: UInt8) {
    if isInString {
      lines.append(byte)
      isInString = isEscaped || byte != UInt8(ascii: "\"")
      isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
    } else if !" \n\r\t".utf8.contains(byte) {
      addToken(byte)
    }
  }

  private mutating func addToken(_ byte: UInt8) {
    let closes = "}]".utf8.contains(byte)
    if closes { depth -= 1 }
    // Nothing stands between the brackets of an empty object or array.
    if closes != hasOpened { addLineBreak() }
    hasOpened = false
    lines.append(byte)
    switch byte {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      depth += 1
      hasOpened = true
    case UInt8(ascii: ","): addLineBreak()
    case UInt8(ascii: ":"): lines.append(UInt8(ascii: " "))
    case UInt8(ascii: "\""): isInString = true
    default: break
    }
  }

  private mutating func addLineBreak() {
    lines.append(UInt8(ascii: "\n"))
    lines += repeatElement(UInt8(ascii: " "), count: 2 * depth)
  }
}
