import CZlib
import NIOCore

extension ByteBuffer {
  /// These bytes in the format of gzip.
  ///
  /// - Parameter level: 3 has nearly the ratio of 6 in less than half of the time.
  /// - Returns: nil if there is no memory.
  public func gzipped(level: Int32 = 3) -> ByteBuffer? {
    // Most bodies are short. A small window then does the same, and is set up several times faster.
    let windowBits: Int32 = readableBytes < 32 << 10 ? 13 : 15
    var stream = z_stream()
    // zlib keeps this address from call to call.
    return withUnsafeMutablePointer(to: &stream) { stream in
      // With 16 added to the window's size, the format is gzip.
      let status = deflateInit2_(
        stream, level, Z_DEFLATED, windowBits + 16, windowBits - 7, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size))
      guard status == Z_OK else { return nil }
      defer { deflateEnd(stream) }
      let limit = Int(deflateBound(stream, uLong(readableBytes)))
      var packed = ByteBuffer()
      var isComplete = false
      withUnsafeReadableBytes { source in
        stream.pointee.next_in = UnsafeMutablePointer(mutating: source.bindMemory(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = uInt(source.count)
        packed.writeWithUnsafeMutableBytes(minimumWritableBytes: limit) { target in
          stream.pointee.next_out = target.bindMemory(to: UInt8.self).baseAddress
          stream.pointee.avail_out = uInt(limit)
          isComplete = deflate(stream, Z_FINISH) == Z_STREAM_END
          return Int(stream.pointee.total_out)
        }
      }
      return isComplete ? packed : nil
    }
  }
}
