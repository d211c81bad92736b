import HTTPTypes
import Hummingbird

extension Response {
  /// A page for people without the app. Neither caches nor search engines keep it.
  static func page(_ page: SharePage, _ status: HTTPResponse.Status = .ok) throws -> Response {
    Response(
      status: status,
      headers: [
        // After the browser's Back, the form has a new token, so that two people can answer on one phone.
        .contentType: "text/html; charset=utf-8", .cacheControl: "no-store",
        .contentSecurityPolicy: SharePage.contentSecurityPolicy, HTTPField.Name("X-Robots-Tag")!: "noindex",
      ],
      body: ResponseBody(byteBuffer: try page.html()))
  }

  /// Leads from one page to another one, so that reloading sends no form again. The path is relative, and so leads to
  /// where the reader's browser is, whatever name and path a proxy has for this service.
  static func toPage(_ token: String) -> Response {
    Response(status: .seeOther, headers: [.location: "../g/\(token)", .cacheControl: "no-store"])
  }
}
