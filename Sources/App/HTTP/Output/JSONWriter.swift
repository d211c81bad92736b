import Foundation
import HTTPServer
import Postgres

/// Writes JSON directly into the bytes of a response. All responses use it: for a list of events, it is ten times as
/// fast as a general encoder, and each type spells out its own JSON.
struct JSONWriter: ~Copyable {
  // Memory of its own: appending a few bytes to an array or a ByteBuffer costs several times as much.
  private var memory: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private(set) var count = 0
  private var needsComma = false

  /// - Parameter capacity: the bytes that fit without a copy.
  init(capacity: Int = 1024) {
    self.capacity = capacity
    memory = .allocate(capacity: capacity)
  }

  deinit {
    memory.deallocate()
  }

  /// Starts over, in the same memory.
  mutating func clear() {
    count = 0
    needsComma = false
  }

  var buffer: ByteBuffer {
    var buffer = ByteBufferAllocator().buffer(capacity: count)
    withBytes { _ = buffer.writeBytes(UnsafeRawBufferPointer($0)) }
    return buffer
  }

  var bytes: [UInt8] { withBytes { Array($0) } }
  var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }

  /// - Parameter start: the number of bytes that are left out at the beginning.
  func withBytes<Value>(from start: Int = 0, _ body: (UnsafeBufferPointer<UInt8>) throws -> Value) rethrows -> Value {
    assert(start <= count)
    return try body(UnsafeBufferPointer(start: memory + start, count: count - start))
  }

  mutating func object(_ members: (inout JSONWriter) -> Void) {
    openObject()
    members(&self)
    closeObject()
  }

  /// For generated code, which needs no closure.
  @inline(__always)
  mutating func openObject() { open(UInt8(ascii: "{")) }

  @inline(__always)
  mutating func closeObject() { close(UInt8(ascii: "}")) }

  mutating func array<Element: JSONWritable>(_ elements: [Element]) {
    array(elements.indices) { json, index in elements[index].write(to: &json) }
  }

  /// - Parameter write: writes an element.
  mutating func array<Elements: Sequence>(
    _ elements: Elements, _ write: (inout JSONWriter, Elements.Element) -> Void
  ) {
    open(UInt8(ascii: "["))
    for element in elements {
      separate()
      write(&self, element)
    }
    close(UInt8(ascii: "]"))
  }

  /// - Parameter name: must not need escaping.
  mutating func member(_ name: StaticString, _ value: any JSONWritable) {
    member(name) { value.write(to: &$0) }
  }

  @inline(__always)
  mutating func member<Value: JSONWritable>(_ name: StaticString, _ value: Value) {
    self.name(name)
    value.write(to: &self)
    needsComma = true
  }

  @inline(__always)
  mutating func member(_ name: StaticString, _ write: (inout JSONWriter) -> Void) {
    self.name(name)
    write(&self)
    needsComma = true
  }

  /// Writes a comma, if one is needed, and a member's name. Inlined, because copying a text of known length takes only a
  /// few instructions.
  @inline(__always)
  private mutating func name(_ name: StaticString) {
    let length = name.utf8CodeUnitCount
    reserve(length + 4)
    if needsComma { append(UInt8(ascii: ",")) }
    append(UInt8(ascii: "\""))
    (memory + count).update(from: name.utf8Start, count: length)
    count += length
    append(UInt8(ascii: "\""))
    append(UInt8(ascii: ":"))
    needsComma = false
  }

  /// A member whose name comes from a client and may need escaping.
  mutating func member(name: String, _ write: (inout JSONWriter) -> Void) {
    separate()
    string(name)
    put(UInt8(ascii: ":"))
    needsComma = false
    write(&self)
    needsComma = true
  }

  /// The members of an object that is already written, and that has some.
  mutating func members(of object: JSONDocument) {
    separate()
    var text = object.text
    text.withUTF8 { raw(UnsafeBufferPointer(rebasing: $0.dropFirst().dropLast())) }
  }

  mutating func string(_ text: String) {
    if text.utf8.withContiguousStorageIfAvailable({ string($0) }) == nil {
      Array(text.utf8).withUnsafeBufferPointer { string($0) }
    }
  }

  private mutating func string(_ text: UnsafeBufferPointer<UInt8>) {
    reserve(text.count + 2)
    append(UInt8(ascii: "\""))
    if Self.needsEscape(text) { escaped(text) } else { raw(text) }
    put(UInt8(ascii: "\""))
  }

  /// See ``Timestamp/rfc3339(microseconds:)``.
  mutating func time(_ time: Timestamp, microseconds: Bool = false) {
    raw(atMost: Timestamp.longestRFC3339 + 2) { text in
      let end = time.writeRFC3339(to: text + 1, microseconds: microseconds) + 1
      text[0] = UInt8(ascii: "\"")
      text[end] = UInt8(ascii: "\"")
      return end + 1
    }
  }

  mutating func integer(_ value: Int) {
    raw(atMost: 20) { bytes in
      var place = 20
      var rest = value.magnitude
      repeat {
        place -= 1
        bytes[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      if value < 0 {
        place -= 1
        bytes[place] = UInt8(ascii: "-")
      }
      for index in place..<20 { bytes[index - place] = bytes[index] }
      return 20 - place
    }
  }

  mutating func raw(_ text: String) {
    var text = text
    text.withUTF8 { raw($0) }
  }

  mutating func raw(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { raw($0) }
  }

  mutating func raw(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard let start = bytes.baseAddress else { return }
    reserve(bytes.count)
    (memory + count).update(from: start, count: bytes.count)
    count += bytes.count
  }

  /// Appends the bytes that a closure puts into memory. The closure returns their number.
  mutating func raw(atMost most: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int) {
    reserve(most)
    let written = write(memory + count)
    assert(written <= most)
    count += written
  }

  mutating func literal(_ text: StaticString) {
    raw(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func put(_ byte: UInt8) {
    reserve(1)
    append(byte)
  }

  /// For bytes with a reserved place.
  private mutating func append(_ byte: UInt8) {
    memory[count] = byte
    count += 1
  }

  private mutating func reserve(_ more: Int) {
    if count + more > capacity { grow(by: more) }
  }

  @inline(never)
  private mutating func grow(by more: Int) {
    capacity = max(2 * capacity, count + more)
    let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    larger.update(from: memory, count: count)
    memory.deallocate()
    memory = larger
  }

  private static func needsEscape(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x22 || byte == 0x5c }

  /// Looks at eight bytes at once.
  private static func needsEscape(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    let ones: UInt64 = 0x0101_0101_0101_0101
    /// Not zero if a byte of the word is less than a limit of at most 0x80.
    func hasByte(of word: UInt64, below limit: UInt64) -> UInt64 { (word &- ones &* limit) & ~word & (ones << 7) }
    var place = 0
    while text.count - place >= 8 {
      let word = UnsafeRawPointer(text.baseAddress! + place).loadUnaligned(as: UInt64.self)
      let found =
        hasByte(of: word, below: 0x20) | hasByte(of: word ^ ones &* 0x22, below: 1)
        | hasByte(of: word ^ ones &* 0x5c, below: 1)
      if found != 0 { return true }
      place += 8
    }
    while place < text.count {
      if needsEscape(text[place]) { return true }
      place += 1
    }
    return false
  }

  private mutating func escaped(_ text: UnsafeBufferPointer<UInt8>) {
    var start = 0
    for index in text.indices where Self.needsEscape(text[index]) {
      raw(UnsafeBufferPointer(rebasing: text[start..<index]))
      escape(text[index])
      start = index + 1
    }
    raw(UnsafeBufferPointer(rebasing: text[start...]))
  }

  private mutating func escape(_ byte: UInt8) {
    switch byte {
    case 0x22: literal("\\\"")
    case 0x5c: literal("\\\\")
    case 0x0a: literal("\\n")
    case 0x0d: literal("\\r")
    case 0x09: literal("\\t")
    default:
      let digits = String(byte, radix: 16)
      raw("\\u00" + (byte < 16 ? "0" : "") + digits)
    }
  }

  private mutating func separate() {
    if needsComma { put(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func open(_ bracket: UInt8) {
    put(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    put(bracket)
    needsComma = true
  }
}
