import HTTPTypes
import Hummingbird
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
    var response = Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: page.bytes))
    if let packed = page.packed, request.takesGzip { response.pack(packed) }
    return response
  }
}
