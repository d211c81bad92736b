import HTTPServer
import Postgres

/// The entity tags that an `If-Match` or `If-None-Match` lists (RFC 9110, section 8.8.3).
///
/// Tags are compared without `W/`: a proxy that compresses a response weakens its tag, and clients send back the tag
/// that they got.
struct EntityTags: Sendable {
  /// Further tags are ignored, because a header may consist of thousands of commas. Clients send a few.
  private static let maximum = 100

  /// Whether the list has `*`.
  private(set) var isAny = false
  /// Without `W/` and quotes, each as the tag of the body before compression.
  private(set) var values: [String] = []

  /// Nil without such a header.
  init?(_ name: HTTPField.Name, of request: Request) {
    guard request.headers.contains(name) else { return nil }
    for line in request.headers[values: name] { read(line.utf8[...]) }
  }

  func contains(_ eTag: String) -> Bool {
    isAny || values.contains { $0.utf8.count + 2 == eTag.utf8.count && eTag.utf8.dropFirst().starts(with: $0.utf8) }
  }

  /// Whether the list has the tag of a collection, or the stamp itself.
  func contains(_ stamp: Timestamp) -> Bool {
    contains(Stamp(stamp).eTag) || values.contains { Stamps.Validator($0) == .echo(stamp) }
  }

  private mutating func read(_ line: Substring.UTF8View) {
    var rest = line
    while values.count < Self.maximum {
      rest = rest.drop { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
      guard !rest.isEmpty else { return }
      if rest.starts(with: "W/".utf8) { rest = rest.dropFirst(2) }
      // A tag without quotes is also accepted. Only a tag in quotes may have a comma.
      let isQuoted = rest.first == UInt8(ascii: "\"")
      if isQuoted { rest = rest.dropFirst() }
      let tag = rest.prefix {
        isQuoted ? $0 != UInt8(ascii: "\"") : $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: " ")
      }
      rest = rest[tag.endIndex...]
      if isQuoted { rest = rest.dropFirst() }
      let text = String(Substring(tag))
      if !isQuoted, text.hasSameBytes(as: "*") { isAny = true }
      values.append(text.plainTag)
    }
  }
}

extension Request {
  /// The state that a change is based on. Nil if there is no `If-Match`, or for `*`.
  func ifMatch() -> EntityTags? {
    guard let tags = EntityTags(.ifMatch, of: self), !tags.isAny else { return nil }
    return tags
  }
}

extension AppError {
  /// Something newer than what `If-Match` names, unless the request would change nothing: a change that is repeated has
  /// succeeded, whatever it was based on.
  static let lostUpdate = AppError(
    .lostUpdate, "lost-update", "This has changed since you read it. Read it again, then retry.")
}
