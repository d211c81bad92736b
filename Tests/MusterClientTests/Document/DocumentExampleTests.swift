import Foundation
import TestSupport
import Testing
import Yams

@testable import MusterClient

/// The models decode the examples of the OpenAPI document.
@Suite struct DocumentExampleTests {
  private typealias Reader = @Sendable (Data) throws -> Void

  /// The model of each operation's success. Operations that the client does not call are absent.
  private static let models: [String: Reader] = [
    "post /auth/register": reader(Tokens.self), "post /auth/login": reader(Tokens.self),
    "post /auth/code/confirm": reader(Tokens.self), "post /auth/refresh": reader(Tokens.self),
    "post /auth/apple": reader(Tokens.self), "post /auth/google": reader(Tokens.self),
    "get /auth/sessions": reader(Page<Session>.self), "get /users/me": reader(User.self),
    "patch /users/me": reader(User.self), "put /users/me/picture": reader(User.self),
    "get /users/me/calendar": reader(CalendarLink.Shown.self), "post /users/me/calendar": reader(CalendarLink.self),
    "get /users": reader(Page<Person>.self), "get /users/recommended": reader(Page<Recommendation>.self),
    "get /users/{id}": reader(PublicProfile.self), "get /friends": reader(Page<Friend>.self),
    "get /friend-requests": reader(Page<FriendRequest>.self), "post /friend-requests": reader(FriendRequest.self),
    "get /friend-requests/{id}": reader(FriendRequest.self), "delete /friend-requests/{id}": reader(FriendRequest.self),
    "post /friend-requests/{id}/accept": reader(FriendRequest.self),
    "post /friend-requests/{id}/decline": reader(FriendRequest.self), "get /blocks": reader(Page<Block>.self),
    "post /reports": reader(Report.self), "get /events": reader(Page<Event>.self), "post /events": reader(Event.self),
    "get /events/{id}": reader(Event.self), "patch /events/{id}": reader(Event.self),
    "delete /events/{id}": reader(Event.self), "get /events/{id}/invitations": reader(Page<Guest>.self),
    "post /events/{id}/invitations": reader(Event.self), "put /events/{id}/invitations/me": reader(Event.self),
    "put /events/{id}/invitations/{userId}": reader(Event.self),
    "delete /events/{id}/invitations/{userId}": reader(Event.self),
    "put /events/{id}/hosts/{userId}": reader(Event.self), "post /events/{id}/reminders": reader([String: Int].self),
    "post /events/{id}/duplicate": reader(Event.self), "get /events/{id}/links": reader(Page<ShareLink>.self),
    "post /events/{id}/links": reader(ShareLink.self), "get /events/{id}/links/{linkId}": reader(ShareLink.self),
    "patch /events/{id}/links/{linkId}": reader(ShareLink.self), "post /links/{token}/join": reader(Event.self),
    "get /invitations": reader(Page<Invitation>.self),
    "post /cache/validate/{userId}": reader([String: Verdict].self), "get /notifications": reader(Page<InboxItem>.self),
    "post /notifications/read": reader([String: Int].self),
    "get /notification-preferences": reader(NotificationPreferences.self),
    "put /notification-preferences": reader(NotificationPreferences.self), "get /devices": reader(Page<Device>.self),
    "put /devices": reader(RegisteredDevice.self),
  ]

  private static func reader<Value: Decodable & Sendable>(_ type: Value.Type) -> Reader {
    { _ = try JSONDecoder.muster().decode(Value.self, from: $0) }
  }

  private typealias Node = [String: Any]

  private func document() throws -> Node {
    let file = Program.checkout.appending(path: "Sources/App/HTTP/openapi.yaml")
    let text = try String(contentsOf: file, encoding: .utf8)
    // Times stay text.
    return try #require(try Yams.load(yaml: text, Resolver.default.removing(.timestamp)) as? Node)
  }

  private func resolved(_ node: Node, in document: Node) throws -> Node {
    guard let reference = node["$ref"] as? String else { return node }
    return try reference.split(separator: "/").dropFirst().reduce(document) { node, name in
      try #require(node[String(name)] as? Node, "\(reference)")
    }
  }

  /// The examples of an operation's responses, by their status.
  private func examples(of operation: Node, in document: Node) throws -> [(status: String, value: Any)] {
    let responses = operation["responses"] as? Node ?? [:]
    return try responses.flatMap { status, response -> [(status: String, value: Any)] in
      guard let response = response as? Node else { return [] }
      let content = try resolved(response, in: document)["content"] as? Node ?? [:]
      return content.filter { $0.key.hasSuffix("json") }.flatMap { _, media -> [(status: String, value: Any)] in
        guard let media = media as? Node else { return [] }
        let named = (media["examples"] as? Node ?? [:]).values.compactMap { ($0 as? Node)?["value"] }
        return (named + [media["example"]].compactMap { $0 }).map { (status, $0) }
      }
    }
  }

  /// An example in which no one has a picture.
  private func withoutPictures(_ value: Any) -> Any {
    switch value {
    case let node as Node:
      Dictionary(
        uniqueKeysWithValues: node.map { ($0, $0 == "pictureUrl" ? NSNull() : withoutPictures($1)) })
    case let items as [Any]: items.map(withoutPictures)
    default: value
    }
  }

  @Test func `every example of a response that the client reads decodes, with and without pictures`() throws {
    let document = try document()
    let paths = try #require(document["paths"] as? [String: Node])
    var successes = 0
    var problems = 0
    var unknown = Set(Self.models.keys)
    for (path, item) in paths where path.hasPrefix("/api/v1/") {
      for method in ["get", "post", "put", "patch", "delete"] {
        guard let operation = item[method] as? Node else { continue }
        let name = "\(method) \(path.dropFirst("/api/v1".count))"
        unknown.remove(name)
        for (status, value) in try examples(of: operation, in: document) {
          for value in [value, withoutPictures(value)] {
            let bytes = try JSONSerialization.data(withJSONObject: value)
            let text = String(decoding: bytes, as: UTF8.self)
            if !status.hasPrefix("2") {
              problems += 1
              #expect(throws: Never.self, "\(name) \(status) \(text)") { try Self.reader(Problem.self)(bytes) }
            } else if let read = Self.models[name] {
              successes += 1
              #expect(throws: Never.self, "\(name) \(status) \(text)") { try read(bytes) }
            }
          }
        }
      }
    }
    #expect(unknown == [], "The document has no such operations.")
    #expect(successes > 60 && problems > 100, "\(successes) \(problems)")
  }
}
