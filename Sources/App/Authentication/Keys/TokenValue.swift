import Foundation

/// A value of fixed size in the bytes of a token.
protocol TokenValue {
  static var byteCount: Int { get }
  init(_ bytes: UnsafeRawBufferPointer, at offset: Int)
  func append(to bytes: inout Data)
}

/// Numbers have their highest byte first.
extension TokenValue where Self: FixedWidthInteger & BitwiseCopyable {
  static var byteCount: Int { bitWidth / 8 }

  init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    self.init(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Self.self))
  }

  func append(to bytes: inout Data) {
    withUnsafeBytes(of: bigEndian) { bytes.append(contentsOf: $0) }
  }
}

extension UInt8: TokenValue {}
extension Int32: TokenValue {}
extension Int64: TokenValue {}

extension UUID: TokenValue {
  static var byteCount: Int { 16 }

  init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    self.init(uuid: bytes.loadUnaligned(fromByteOffset: offset, as: uuid_t.self))
  }

  func append(to bytes: inout Data) {
    withUnsafeBytes(of: uuid) { bytes.append(contentsOf: $0) }
  }
}

extension Identifier: TokenValue {
  static var byteCount: Int { UUID.byteCount }

  init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    self.init(rawValue: UUID(bytes, at: offset))
  }

  func append(to bytes: inout Data) {
    rawValue.append(to: &bytes)
  }
}

extension Data {
  /// The content of a token: values one after the other.
  init<each Value: TokenValue>(packing values: repeat each Value) {
    self.init()
    repeat (each values).append(to: &self)
  }

  /// Nil unless the values have exactly this many bytes.
  func unpacked<each Value: TokenValue>(as types: repeat (each Value).Type) -> (repeat each Value)? {
    var length = 0
    repeat length += (each types).byteCount
    guard count == length else { return nil }
    return withUnsafeBytes { bytes in
      var offset = 0
      func next<One: TokenValue>(_ type: One.Type) -> One {
        defer { offset += One.byteCount }
        return One(bytes, at: offset)
      }
      return (repeat next(each types))
    }
  }
}
