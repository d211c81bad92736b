import Crypto
import Foundation
import HTML
import NIOCore

/// The page at `/docs`, which is rendered from the OpenAPI document when the program is built. It has no scripts, and
/// needs nothing but itself.
struct DocsPage: Sendable {
  let bytes: ByteBuffer
  /// The same, compressed once, because compressing takes longer than the rest of the request.
  let packed: ByteBuffer?
  let eTag: String

  /// The policy for browsers: nothing may be loaded or run, and the page's own style is the only one.
  static let contentSecurityPolicy =
    "default-src 'none'; style-src 'sha256-\(styleDigest)'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  private static let styleDigest = Data(SHA256.hash(data: Data(Resources.style.utf8))).base64EncodedString()
  /// Stands for the service's own URL.
  private static let placeholder = "https://muster.invalid"

  init(baseURL: String) {
    let html = Resources.docsPage.replacing(Self.placeholder, with: baseURL.htmlEscaped)
    bytes = ByteBuffer(string: html)
    packed = Compression.gzip(bytes, level: 9)
    eTag = "\"\(Data(SHA256.hash(data: Data(html.utf8)).prefix(18)).base64EncodedString())\""
  }
}
