import MusterClient

/// A response of the service, as the client read it and as it came.
struct Reply<Value> {
  let value: Value
  let json: JSONValue
}

extension Reply<User> {
  /// The response to a login without its tokens.
  var user: Reply<User> { Reply(value: value, json: json["user"] ?? .null) }
}
