import Foundation

extension SQL {
  /// The header in front of a parameter's bytes.
  @usableFromInline
  struct ParameterHeader {
    /// As in `pg_type.oid`.
    let type: UInt32
    /// -1 for NULL.
    let length: Int32

    static let size = 8

    /// Makes room for a header.
    @usableFromInline
    static func append(to bytes: inout [UInt8]) {
      withUnsafeBytes(of: UInt64(0)) { bytes.append(contentsOf: $0) }
    }

    func write(to bytes: inout [UInt8], at place: Int) {
      bytes.withUnsafeMutableBytes { bytes in
        bytes.storeBytes(of: type, toByteOffset: place, as: UInt32.self)
        bytes.storeBytes(of: length, toByteOffset: place + 4, as: Int32.self)
      }
    }

    /// Reads a header, and moves the offset behind it.
    init(_ bytes: UnsafeRawBufferPointer, at offset: inout Int) {
      type = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
      length = bytes.loadUnaligned(fromByteOffset: offset + 4, as: Int32.self)
      offset += Self.size
    }

    init(type: UInt32, length: Int32) {
      self.type = type
      self.length = length
    }

    /// The size of the parameter without its header.
    var size: Int { max(0, Int(length)) }
  }

  /// The types of the parameters.
  var types: [UInt32] {
    bytes.withUnsafeBytes { bytes in
      var types: [UInt32] = []
      var offset = 0
      while offset < bytes.count {
        let header = ParameterHeader(bytes, at: &offset)
        types.append(header.type)
        offset += header.size
      }
      return types
    }
  }

  private typealias Value = UnsafePointer<CChar>?
  /// libpq's code for the binary format.
  private static let binary: Int32 = 1

  /// Calls `body` with the parameters as libpq expects them: values, lengths and formats. The pointers are valid only
  /// during the call.
  func withPointers<Result>(
    _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
  ) -> Result {
    let (bytes, count) = (bytes, template.parameterCount)
    guard count > 0 else { return body(nil, nil, nil) }
    // On the stack, because this runs for each statement.
    return withUnsafeTemporaryAllocation(of: Value.self, capacity: count) { values in
      withUnsafeTemporaryAllocation(of: Int32.self, capacity: 2 * count) { numbers in
        bytes.withUnsafeBytes { bytes in
          var offset = 0
          for index in 0..<count {
            let header = ParameterHeader(bytes, at: &offset)
            let value = bytes.baseAddress.map { ($0 + offset).assumingMemoryBound(to: CChar.self) }
            values.initializeElement(at: index, to: header.length < 0 ? nil : value)
            numbers.initializeElement(at: index, to: max(0, header.length))
            numbers.initializeElement(at: count + index, to: Self.binary)
            offset += header.size
          }
          let lengths = UnsafePointer(numbers.baseAddress)
          return body(UnsafePointer(values.baseAddress), lengths, lengths.map { $0 + count })
        }
      }
    }
  }
}
