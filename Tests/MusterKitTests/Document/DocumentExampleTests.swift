import Foundation
import Testing

@testable import MusterKit

/// The models decode the examples of the OpenAPI document.
@Suite struct DocumentExampleTests {
  private typealias Reader = @Sendable (Data) throws -> Void

  /// The model of each operation's success.
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
    "post /events/{id}/invitations/{userId}/approve": reader(Event.self),
    "put /events/{id}/hosts/{userId}": reader(Event.self), "post /events/{id}/reminders": reader([String: Int].self),
    "post /events/{id}/duplicate": reader(Event.self), "get /events/{id}/links": reader(Page<ShareLink>.self),
    "post /events/{id}/links": reader(ShareLink.self), "get /events/{id}/links/{linkId}": reader(ShareLink.self),
    "patch /events/{id}/links/{linkId}": reader(ShareLink.self), "post /links/{token}/join": reader(Event.self),
    "get /events/{id}/host-offers": reader(Page<HostOffer>.self),
    "get /proposals": reader(Page<Proposal>.self), "post /proposals/{id}/accept": reader(Event.self),
    "get /invitations": reader(Page<Invitation>.self),
    "post /cache/validate/{userId}": reader([String: Verdict].self), "get /notifications": reader(Page<InboxItem>.self),
    "post /notifications/read": reader([String: Int].self),
    "get /notification-preferences": reader(NotificationPreferences.self),
    "put /notification-preferences": reader(NotificationPreferences.self), "get /devices": reader(Page<Device>.self),
    "put /devices": reader(RegisteredDevice.self),
  ]

  /// Responses with no content of interest, and a document for the user.
  private static let withoutModels: Set = [
    "post /auth/code", "post /auth/password-reset", "post /auth/apple/notifications", "get /users/me/export",
  ]

  private static func reader<Value: Decodable & Sendable>(_ type: Value.Type) -> Reader {
    { _ = try JSONDecoder.muster().decode(Value.self, from: $0) }
  }

  /// An example in which no one has a picture.
  private func withoutPictures(_ value: Any) -> Any {
    switch value {
    case let node as PublishedDocument.Node:
      Dictionary(
        uniqueKeysWithValues: node.map { ($0, $0 == "pictureUrl" ? NSNull() : withoutPictures($1)) })
    case let items as [Any]: items.map(withoutPictures)
    default: value
    }
  }

  @Test func `every example of a response that the client reads decodes, with and without pictures`() throws {
    let document = try PublishedDocument()
    var successes = 0
    var problems = 0
    var unknown = Set(Self.models.keys)
    var unread: Set<String> = []
    for (method, path, operation) in try document.operations() {
      let name = "\(method) \(path)"
      unknown.remove(name)
      for (status, type, examples) in try document.responses(of: operation) where type.hasSuffix("json") {
        for value in examples.flatMap({ [$0, withoutPictures($0)] }) {
          let bytes = try JSONSerialization.data(withJSONObject: value)
          let text = String(decoding: bytes, as: UTF8.self)
          if !status.hasPrefix("2") {
            problems += 1
            #expect(throws: Never.self, "\(name) \(status) \(text)") { try Self.reader(Problem.self)(bytes) }
          } else if let read = Self.models[name] {
            successes += 1
            #expect(throws: Never.self, "\(name) \(status) \(text)") { try read(bytes) }
          } else {
            unread.insert(name)
          }
        }
      }
    }
    #expect(unknown == [], "The document has no such operations.")
    #expect(unread == Self.withoutModels, "These operations need a model.")
    #expect(successes > 60 && problems > 100, "\(successes) \(problems)")
  }
}
