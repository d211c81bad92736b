import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import App

/// Small files that are pictures, and some that are not.
enum Sample {
  /// - Parameters:
  ///   - number: makes another picture of the same size.
  ///   - length: of the file, at least.
  static func png(_ number: Int = 0, width: UInt32 = 1, height: UInt32 = 1, length: Int = 0) -> [UInt8] {
    let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    let start = join(
      signature, chunk("IHDR", join(big(width), big(height), [8, 6, 0, 0, 0])),
      chunk("tEXt", ascii("Comment\0\(number)")))
    // Bytes that show which of them are missing.
    let count = max(8, length - start.count - 24)
    let pixels = (0..<count).map { (place: Int) -> UInt8 in UInt8(truncatingIfNeeded: place &* 31 &+ (place >> 8)) }
    return join(start, chunk("IDAT", pixels), chunk("IEND", []))
  }

  static func jpeg(width: UInt16 = 1, height: UInt16 = 1, comment: String = "") -> [UInt8] {
    join(
      [0xff, 0xd8, 0xff, 0xe0, 0, 16], ascii("JFIF\0"), [1, 1, 0, 0, 1, 0, 1, 0, 0],
      [0xff, 0xfe], big(UInt16(comment.utf8.count + 2)), ascii(comment),
      [0xff, 0xff, 0xc0, 0, 11, 8], big(height), big(width), [1, 1, 0x11, 0],
      [0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0x55, 0xff, 0xd9])
  }

  /// Text that is a WebP file of one pixel.
  static let webpText = "RIFF\u{12}\0\0\0WEBPVP8L\u{5}\0\0\0/\0\0\0\0\0"

  static let lossyWebP = join(
    ascii("RIFF\u{16}\0\0\0WEBPVP8 \u{a}\0\0\0"), [0x30, 1, 0, 0x9d, 1, 0x2a, 1, 0, 1, 0])

  static let extendedWebP = join(
    ascii("RIFF\u{16}\0\0\0WEBPVP8X\u{a}\0\0\0"), [0, 0, 0, 0, 63, 0, 0, 63, 0, 0])

  static func heic(
    width: UInt32 = 4032, height: UInt32 = 3024, brands: [String] = ["heic", "mif1", "heic"]
  ) -> [UInt8] {
    let compatible = brands.dropFirst().flatMap { ascii($0) }
    let tile = box("ispe", join([0, 0, 0, 0], big(UInt32(512)), big(UInt32(512))))
    let whole = box("ispe", join([0, 0, 0, 0], big(width), big(height)))
    let properties = box("iprp", box("ipco", join(tile, whole)))
    let handler = box("hdlr", [UInt8](repeating: 0, count: 20))
    return join(
      box("ftyp", join(ascii(brands[0]), [0, 0, 0, 0], compatible)),
      box("meta", join([0, 0, 0, 0], handler, properties)), box("mdat", [1, 2, 3, 4]))
  }

  static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
    join(big(UInt32(content.count + 8)), ascii(name), content)
  }

  static func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

  static func join(_ parts: [UInt8]...) -> [UInt8] { Array(parts.joined()) }

  /// Its checksum is none: nobody here decodes it.
  private static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    join(big(UInt32(content.count)), ascii(name), content, [0, 0, 0, 0])
  }

  private static func big(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }
}

/// What the service answered, in bytes.
struct BinaryAnswer: Sendable {
  let status: Int
  let headers: HTTPHeaders
  let bytes: [UInt8]

  func header(_ name: String) -> String? { headers.first(name: name) }
}

extension TestApp {
  /// GETs a URL as an image view does: as it stands, without a token.
  func fetch(_ url: String, method: String = "GET", headers: [(String, String)] = []) async throws -> BinaryAnswer {
    var request = HTTPClientRequest(url: url)
    request.method = .RAW(value: method)
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
    let body = try await response.body.collect(upTo: 16 << 20)
    return BinaryAnswer(
      status: Int(response.status.code), headers: response.headers, bytes: Array(body.readableBytesView))
  }
}

extension Phone {
  /// - Parameter type: what the phone takes it for.
  @discardableResult
  func putPicture(
    _ bytes: [UInt8], type: String = "application/octet-stream", expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Answer {
    var request = HTTPClientRequest(url: "\(app.url)/api/v1/users/me/picture")
    request.method = .PUT
    request.headers.add(name: "Authorization", value: "Bearer \(accessToken)")
    request.headers.add(name: "Content-Type", value: type)
    request.body = .bytes(ByteBuffer(bytes: bytes))
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
    let body = try await response.body.collect(upTo: 16 << 20)
    let answer = Answer(
      status: Int(response.status.code), headers: response.headers.map { ($0, $1) }, body: String(buffer: body))
    #expect(answer.status == status, "\(answer.body)", sourceLocation: sourceLocation)
    return answer
  }

  /// Puts a picture.
  ///
  /// - Returns: its URL.
  func show(_ bytes: [UInt8], sourceLocation: SourceLocation = #_sourceLocation) async throws -> String {
    let answer = try await putPicture(bytes, sourceLocation: sourceLocation)
    return try #require(answer.json["pictureUrl"].string, sourceLocation: sourceLocation)
  }

  func removePicture(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let answer = try await send("DELETE", "users/me/picture")
    #expect(answer.status == 204, "\(answer.body)", sourceLocation: sourceLocation)
  }
}
