/// The success that a call has. Another response of 2xx comes from a proxy, or from a network that wants a login of its
/// own.
enum ExpectedResponse: Sendable {
  /// 204.
  case nothing
  /// Another status of 2xx, and a body of a media type.
  case body(type: String)

  static let json = ExpectedResponse.body(type: "application/json")
  static let eventStream = ExpectedResponse.body(type: "text/event-stream")

  /// The media types that a request accepts. Problems are also JSON.
  var mediaType: String {
    switch self {
    case .nothing: "application/json"
    case .body(let type): type
    }
  }

  func matches(_ response: TransportResponse) -> Bool {
    switch self {
    case .nothing: response.status == 204
    case .body(let type):
      (200..<300).contains(response.status) && response.status != 204 && response.mediaType == type
    }
  }
}

extension TransportResponse {
  /// The media type in lower case, without parameters.
  var mediaType: String? {
    headers["content-type"]?.split(separator: ";").first.map { $0.lowercased().filter { !$0.isWhitespace } }
  }
}
