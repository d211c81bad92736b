import HTTPTypes
import Hummingbird

/// The pages of share links, for anyone who has the link.
struct SharePageRoutes {
  let dependencies: Dependencies

  func add(to router: some RouterMethods<Context>) {
    router.get("e/{token}", use: show)
  }

  /// Reads only: whatever fetches a page, such as a preview in a chat, changes nothing. Unknown query parameters are
  /// ignored, because sites that share a link may append their own.
  @Sendable private func show(_ request: Request, _ context: Context) async throws -> Response {
    try dependencies.rateLimits.count(.files, in: context)
    // A guess costs no read.
    guard let token = dependencies.linkTokens.read(context.parameters.get("token") ?? ""),
      let shared = try await SharedEvent.find(token, in: dependencies.database)
    else { return try respond(.unknown, .notFound) }
    return try respond(shared.page, shared.isExpired ? .gone : .ok)
  }

  private func respond(_ page: SharePage, _ status: HTTPResponse.Status) throws -> Response {
    Response(
      status: status,
      headers: [
        .contentType: "text/html; charset=utf-8", .cacheControl: "private, no-cache",
        .contentSecurityPolicy: SharePage.contentSecurityPolicy, HTTPField.Name("X-Robots-Tag")!: "noindex",
      ],
      body: ResponseBody(byteBuffer: try page.html()))
  }
}
