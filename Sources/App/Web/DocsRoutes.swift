import Crypto
import Foundation
import HTML
import HTTPServer
import Synchronization

/// The page at `/docs`.
final class DocsRoutes: Sendable {
  private let publicURL: PublicURL
  private let page = Mutex<DocsPage?>(nil)

  init(_ dependencies: Dependencies) {
    publicURL = dependencies.publicURL
  }

  @Sendable func show(_ request: Request, _ context: Context) async throws -> Response {
    let page = self.page.withLock { page in
      // Made at the first request: the service's URL may not be known before it listens.
      let shown = page ?? DocsPage(baseURL: publicURL.text)
      page = shown
      return shown
    }
    let headers: HTTPFields = [
      .contentType: "text/html; charset=utf-8", .cacheControl: "public, max-age=300", .eTag: page.eTag,
      .contentSecurityPolicy: DocsPage.contentSecurityPolicy,
    ]
    if request.alreadyHas(page.eTag) { return Response(status: .notModified, headers: headers) }
    var response = Response(status: .ok, headers: headers, body: ResponseBody(page.bytes))
    if let packed = page.packed, request.takesGzip { response.pack(packed) }
    return response
  }
}

/// The page at `/docs`, which is rendered from the OpenAPI document when the program is built. It has no scripts, and
/// needs nothing but itself.
private struct DocsPage: Sendable {
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
    packed = bytes.gzipped(level: 9)
    eTag = "\"\(Data(SHA256.hash(data: Data(html.utf8)).prefix(18)).base64EncodedString())\""
  }
}
