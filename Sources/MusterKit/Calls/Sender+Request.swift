import Foundation

extension Sender {
  /// The characters that a query's value may contain unescaped. A plus sign would be read as a space.
  private static let plainInQuery = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~,:")

  /// The request that goes over the wire.
  func request(_ call: APICall, _ token: String?) throws -> TransportRequest {
    var headers = call.headers
    headers["Accept"] = call.route.success.mediaType
    if let token { headers["Authorization"] = "Bearer \(token)" }
    return TransportRequest(
      method: call.route.method, url: try url(of: call), headers: headers, body: call.body, timeout: call.timeout)
  }

  private func url(of call: APICall) throws -> URL {
    guard var components = URLComponents(url: baseURL, resolvingAgainstBaseURL: true), components.host != nil else {
      throw MusterError.unreachable("\(baseURL) is not the URL of a server.")
    }
    var folder = components.percentEncodedPath
    if folder.hasSuffix("/") { folder.removeLast() }
    components.percentEncodedPath = folder + Route.prefix + call.route.path
    components.percentEncodedQuery = call.query.isEmpty ? nil : call.query.map(Self.encode).joined(separator: "&")
    components.fragment = nil
    guard let url = components.url else { throw MusterError.unreachable("\(baseURL) is not the URL of a server.") }
    return url
  }

  private static func encode(_ parameter: (name: String, value: String)) -> String {
    let value = parameter.value.addingPercentEncoding(withAllowedCharacters: plainInQuery) ?? ""
    return "\(parameter.name)=\(value)"
  }
}
