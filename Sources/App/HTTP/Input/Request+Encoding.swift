import Foundation
import HTTPServer

extension Request {
  /// Names of UTF-8, and of ASCII, which is a part of it.
  private static let charsets = ["utf-8", "utf8", "us-ascii", "ascii"]

  /// The text of a body, without the byte order mark that some clients put in front of it.
  ///
  /// - Throws: `unsupported-media-type` if the body is compressed, or not in UTF-8.
  func text(of body: ByteBuffer) throws -> ByteBufferView {
    try refuseCoding()
    if let charset, !Self.charsets.contains(where: { $0.hasSameBytes(as: charset) }) { throw AppError.notUTF8 }
    let bytes = body.readableBytesView
    let start = Array(bytes.prefix(3))
    if start == [0xef, 0xbb, 0xbf] { return bytes.dropFirst(3) }
    // Clients forget to name the encoding. No JSON and no form begins like this.
    if start.starts(with: [0x1f, 0x8b]) { throw AppError.compressedBody }
    // UTF-16 and UTF-32: with a byte order mark, or with a character of ASCII as the first one.
    if start.starts(with: [0xfe, 0xff]) || start.starts(with: [0xff, 0xfe]) || start.prefix(2).contains(0) {
      throw AppError.notUTF8
    }
    return bytes
  }

  /// - Throws: `unsupported-media-type` if the body has a `Content-Encoding`.
  func refuseCoding() throws {
    guard let coding = headers.value(of: .contentEncoding) else { return }
    guard coding.lowercased().hasSameBytes(as: "identity") else { throw AppError.compressedBody }
  }

  /// The parameter of `Content-Type`, in lower case.
  private var charset: String? {
    guard let type = headers.value(of: .contentType), type.utf8.contains(UInt8(ascii: ";")) else { return nil }
    for parameter in type.split(separator: ";").dropFirst() {
      let parts = parameter.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
      guard parts.count == 2, parts[0].lowercased().hasSameBytes(as: "charset") else { continue }
      return parts[1].trimmingCharacters(in: CharacterSet(charactersIn: "\"")).lowercased()
    }
    return nil
  }
}

extension AppError {
  static let compressedBody = AppError(
    .unsupportedMediaType, "unsupported-media-type",
    "The body must not be compressed: send it without Content-Encoding.")
  static let notUTF8 = AppError(.unsupportedMediaType, "unsupported-media-type", "The body must be in UTF-8.")
}
