import Crypto
import Foundation
import Mustache
import NIOCore

/// The page at `/docs`, rendered from the OpenAPI document. It has no scripts, and needs nothing but itself.
struct DocsPage: Sendable {
  let bytes: ByteBuffer
  /// The same, compressed once, because compressing takes longer than the rest of the request.
  let packed: ByteBuffer?
  let eTag: String

  /// The policy for browsers: nothing may be loaded or run, and the page's own style is the only one.
  static let contentSecurityPolicy =
    "default-src 'none'; style-src 'sha256-\(styleDigest)'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  private static let styleDigest = Data(SHA256.hash(data: Data(Resources.style.utf8))).base64EncodedString()
  /// Stands for the service's own URL in the page that all services of this process share.
  private static let placeholder = "https://muster.invalid"

  /// Rendering takes longer than a request may, so a process does it once, at the first request.
  private static let shared = Task { try DocsPage.render() }

  init(baseURL: String) async throws {
    let html = try await Self.shared.value.replacing(Self.placeholder, with: baseURL.htmlEscaped)
    bytes = ByteBuffer(string: html)
    packed = Compression.gzip(bytes, level: 9)
    eTag = "\"\(Data(SHA256.hash(data: Data(html.utf8)).prefix(18)).base64EncodedString())\""
  }

  private static func render() throws -> String {
    let reader = ReferenceReader(try OpenAPIDocument(yaml: Resources.openAPI), baseURL: placeholder)
    let page: [String: Any] = [
      "reference": reader.reference(), "style": Resources.style, "base": placeholder, "login": DemoSeed.login,
      "password": DemoSeed.password,
    ]
    return try MustacheTemplate.html(Resources.docsTemplate).render(page)
  }
}
