import Crypto
import Foundation
import Mustache
import NIOCore

/// The page of a share link. `share.mustache` uses the names of these properties. It has no scripts, and needs nothing
/// but itself.
///
/// No optional name of an inner object may be a name of an outer one: see ``APIReference``.
struct SharePage: Sendable {
  let title: String
  var text = ""
  var event: Event?

  struct Event: Sendable {
    let title: String
    let state: String?
    let hosts: String?
    /// The date alone, in words.
    let day: String
    let start: String
    let when: String
    let zone: String
    let place: String?
    let map: String?
    let note: String?
    let counts: String
    let names: [String]
    let more: String?
    let answerTitle: String
    let answer: String

    var hasNames: Bool { !names.isEmpty }
  }

  static let unknown = SharePage(
    title: "This link does not work",
    text: "It may be incomplete, or the host has taken it back. Ask the host for another one.")
  static let expired = SharePage(
    title: "This link has expired", text: "Ask the host for another one if you want to see the event.")

  /// The policy for browsers: nothing may be loaded or run, and the page's own style is the only one.
  static let contentSecurityPolicy =
    "default-src 'none'; style-src 'sha256-\(styleDigest)'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  private static let styleDigest = Data(SHA256.hash(data: Data(Resources.shareStyle.utf8))).base64EncodedString()
  private static let template = Result { try MustacheTemplate(string: Resources.shareTemplate) }

  func html() throws -> ByteBuffer {
    let context: [String: Any] = ["page": contents, "style": Resources.shareStyle]
    return ByteBuffer(string: try Self.template.get().render(context))
  }

  /// Dictionaries, in which a name that is nil is absent, so that Mustache takes it for false.
  private var contents: [String: Any] {
    var page: [String: Any] = ["title": title, "text": text]
    guard let event else { return page }
    var members: [String: Any] = [
      "title": event.title, "day": event.day, "start": event.start, "when": event.when, "zone": event.zone,
      "counts": event.counts, "names": event.names, "hasNames": event.hasNames, "answerTitle": event.answerTitle,
      "answer": event.answer,
    ]
    for (name, value) in [
      ("state", event.state), ("hosts", event.hosts), ("place", event.place), ("map", event.map), ("note", event.note),
      ("more", event.more),
    ] { members[name] = value }
    page["event"] = members
    return page
  }
}
