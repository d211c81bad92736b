import Foundation
import Testing

@testable import MusterKit

/// The models know everything that the service sends.
@Suite struct ExportTests {
  private typealias Reader = @Sendable (Data) throws -> JSONValue

  /// The model of each call, by the beginning of its file's name. The longest name applies.
  private static let models: [(name: String, read: Reader)] = [
    ("post-auth-login", reader(Tokens.self)), ("get-users-me", reader(User.self)),
    ("get-users-0", reader(PublicProfile.self)), ("get-users-query", reader(Page<FoundUser>.self)),
    ("get-users-recommended", reader(Page<Recommendation>.self)), ("get-friends", reader(Page<Friend>.self)),
    ("get-friend-requests-direction", reader(Page<FriendRequest>.self)),
    ("get-friend-requests-0", reader(FriendRequest.self)), ("post-friend-requests", reader(FriendRequest.self)),
    ("get-blocks", reader(Page<Block>.self)), ("get-events", reader(Page<Event>.self)),
    ("get-events-0", reader(Event.self)), ("put-events", reader(Event.self)), ("post-events", reader(Event.self)),
    ("get-invitations", reader(Page<Invitation>.self)), ("get-notifications", reader(Page<InboxItem>.self)),
    ("get-notification-preferences", reader(NotificationPreferences.self)),
    ("post-notifications-read", reader([String: Int].self)), ("get-devices", reader(Page<Device>.self)),
    ("put-devices", reader(RegisteredDevice.self)), ("post-cache-validate", reader([String: Verdict].self)),
  ]

  /// Decodes with a model, and returns what the model has kept.
  private static func reader<Value: Codable & Sendable>(_ type: Value.Type) -> Reader {
    { try JSONValue(encoding: JSONDecoder.muster().decode(Value.self, from: $0)) }
  }

  private static func read(_ call: PreviewExport.Call, _ bytes: Data) throws -> JSONValue {
    if call.status >= 400 { return try reader(Problem.self)(bytes) }
    if call.file.hasSuffix("-invitations.json"), call.method == "GET", call.path.contains("/events/") {
      return try reader(Page<Guest>.self)(bytes)
    }
    if call.file.hasSuffix("-links.json") { return try reader(Page<ShareLink>.self)(bytes) }
    let model = models.filter { call.file.hasPrefix($0.name) }.max { $0.name.count < $1.name.count }
    return try #require(model, "no model for \(call.file)").read(bytes)
  }

  /// The members that are in a response, but not in what the model has kept. Null stands for absence.
  private static func lost(_ sent: JSONValue, _ kept: JSONValue?, at place: String) -> [String] {
    switch (sent, kept) {
    case (.null, _): return []
    case (.object(let members), .object(let others)?):
      return members.flatMap { lost($0.value, others[$0.key], at: "\(place).\($0.key)") }
    case (.array(let items), .array(let others)?) where items.count == others.count:
      return zip(items, others).flatMap { lost($0, $1, at: "\(place)[]") }
    default: return sent == kept ? [] : [place]
    }
  }

  @Test func `every response decodes, and nothing in it is unknown`() async throws {
    let export = try PreviewExport(folder: try await ExportedDemo.folder)
    let calls = export.calls.filter { $0.file.hasSuffix(".json") }
    #expect(calls.count > 60)
    for call in calls {
      let bytes = try export.body(of: call)
      let sent = try JSONDecoder.muster().decode(JSONValue.self, from: bytes)
      let kept = try Self.read(call, bytes)
      #expect(Self.lost(sent, kept, at: call.file) == [])
    }
  }

  @Test func `items of a validation are those of the lists`() async throws {
    let export = try PreviewExport(folder: try await ExportedDemo.folder)
    func verdicts(_ include: String) throws -> [String: Verdict] {
      let call = try #require(export.call("POST", "/api/v1/cache/validate/\(ExportedDemo.ana.wire)\(include)"))
      return try JSONDecoder.muster().decode([String: Verdict].self, from: export.body(of: call))
    }
    let events: Page<JSONValue> = try export.read(.listEvents)
    let (items, changes) = (try verdicts("?include=items")["events"], try verdicts("?include=changes")["events"])
    #expect(items?.updatedItems == events.items && items?.timestamp == events.timestamp)
    #expect(changes?.keys?.compactMap { changes?.changed?[$0]?.item } == events.items)
    #expect(Set(try verdicts("").keys) == Set(CacheCollection.allCases.map(\.rawValue)))
  }

  @Test func `pictures are files that image views can load`() async throws {
    let export = try PreviewExport(folder: try await ExportedDemo.folder)
    let friends: Page<Friend> = try export.read(.listFriends)
    for friend in friends.items {
      let url = try #require(friend.user.pictureUrl)
      #expect(url.isFileURL)
      #expect(try Data(contentsOf: url).starts(with: [0xff, 0xd8, 0xff]))
    }
  }
}
