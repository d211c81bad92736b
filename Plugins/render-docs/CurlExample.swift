/// The command that calls an operation with the examples of the OpenAPI document. A shell needs `TOKEN` and
/// `REFRESH_TOKEN` for it.
struct CurlExample {
  let document: OpenAPIDocument
  let baseURL: String

  /// curl sends this type with `--data-urlencode`.
  private static let form = "application/x-www-form-urlencoded"

  /// - Parameter parameters: of the operation and its path, resolved.
  func command(_ method: String, _ path: String, _ operation: Tree, _ parameters: [Tree]) -> String {
    let content = document.resolved(operation.member("requestBody")).member("content").members.first
    var first = "curl"
    if isStream(operation) { first += " -N" }
    // curl chooses GET, or POST for a body.
    if method != (content == nil ? "GET" : "POST") { first += " -X \(method)" }
    var words = ["\(first) \(Self.quoted(baseURL + target(path, parameters)))"]
    if APIReference.needsToken(operation) { words.append(#"-H "Authorization: Bearer $TOKEN""#) }
    if let (type, media) = content {
      if type == Self.form {
        for (name, value) in media.examples.first?.value.members ?? [] {
          words.append("--data-urlencode " + Self.quoted("\(name)=\(value.text)"))
        }
      } else {
        words.append("-H 'Content-Type: \(type)'")
        words.append(data(type, media))
      }
    }
    return words.joined(separator: " \\\n  ")
  }

  private func isStream(_ operation: Tree) -> Bool {
    operation.member("responses").member("200").member("content").member("text/event-stream") != .null
  }

  /// The path with the examples of its parameters, and of those in the query. A query parameter whose example is in
  /// its schema is left out.
  private func target(_ path: String, _ parameters: [Tree]) -> String {
    var path = path
    var query: [String] = []
    for parameter in parameters where parameter.member("example") != .null {
      let (name, example) = (parameter.member("name").text, parameter.member("example").text)
      switch parameter.member("in").text {
      case "path": path = path.replacing("{\(name)}", with: example)
      case "query": query.append("\(name)=\(example)")
      default: break
      }
    }
    return query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
  }

  private func data(_ type: String, _ media: Tree) -> String {
    guard type.hasSuffix("json") else { return "--data-binary @picture.\(type.split(separator: "/").last ?? "")" }
    let example = media.examples.first?.value ?? .null
    let body = Self.quoted(example.lines(indent: 2))
    // No example of a refresh token would work, because each is valid once.
    let token = example.member("refreshToken").text
    return "-d " + (token.isEmpty ? body : body.replacing(token, with: #"'"$REFRESH_TOKEN"'"#))
  }

  /// One word for a shell.
  private static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: #"'\''"#) + "'"
  }
}

extension Tree {
  /// The examples of a media type. Several ones have names.
  var examples: [(name: String?, value: Tree)] {
    if member("example") != .null { return [(nil, member("example"))] }
    return member("examples").members.map { ($0.key, $0.value.member("value")) }
  }
}
