import MusterKit

/// A response of the service: the value that the client decoded, and its JSON, with all members.
struct Reply<Value> {
  let value: Value
  let json: JSONValue
}

extension Reply<User> {
  /// The response to a login without its tokens.
  var user: Reply<User> { Reply(value: value, json: json["user"] ?? .null) }
}
