import Foundation
import HTTPServer

extension DemoSeed {
  static func logIn(_ user: PersonSeed) -> ExportedCall {
    ExportedCall(
      method: .post, path: "/api/v1/auth/login",
      body: #"{"login": "\#(user.username)", "password": "\#(password)", "device": "Preview"}"#)
  }

  /// The reads of an app for a user of the demo, and some writes, in an order that works. Sessions are left out,
  /// because they belong to the export.
  func calls(of user: PersonSeed) throws -> [ExportedCall] {
    [registration] + (Collection.allCases.map { "/api/v1/\($0.facts.path)" } + Self.otherLists).map { .get($0) }
      + reads(of: user) + (try pictures())
      + validations(by: user) + writes(by: user)
  }

  private static let otherLists = [
    "/api/v1/events?when=past", "/api/v1/events?include=participants", "/api/v1/invitations?status=invited",
    "/api/v1/notifications?unread=true", "/api/v1/users/recommended", "/api/v1/users?query=ha", "/api/v1/devices",
  ]

  /// First, so that the list of devices has one.
  private var registration: ExportedCall {
    let token = String(repeating: "0", count: 64)
    return ExportedCall(
      method: .put, path: "/api/v1/devices",
      body: #"{"platform": "ios", "token": "\#(token)", "name": "Ana's iPhone"}"#, status: 201)
  }

  private func reads(of user: PersonSeed) -> [ExportedCall] {
    let profiles = people.map { person in
      let isHidden = friends.blocks.contains { $0.blocker == user.username && $0.blocked == person.username }
      return ExportedCall.get("/api/v1/users/\(person.user)", status: isHidden ? 404 : 200)
    }
    let requests = friends.requests.filter { [$0.from, $0.to].contains(user.username) }.map {
      ExportedCall.get("/api/v1/friend-requests/\(FriendRequest.ID(rawValue: $0.id))")
    }
    let hosted = events.filter { $0.creator == user.username || $0.coHosts?.contains(user.username) == true }
    let events = events.filter { event in
      event.guests[user.username] != nil || hosted.contains { $0.id == event.id }
    }.flatMap {
      ["", "/invitations", "/calendar.ics"].map { [path = path(of: $0)] in ExportedCall.get(path + $0) }
    }
    let links = hosted.filter { $0.links != nil }.map { ExportedCall.get(path(of: $0) + "/links") }
    return profiles + requests + events + links
  }

  private func path(of event: EventSeed) -> String { "/api/v1/events/\(Event.ID(rawValue: event.id))" }

  private func pictures() throws -> [ExportedCall] {
    try people.flatMap { person in
      let path = "/pictures/\(Self.key(of: try picture(of: person)))"
      return [ExportedCall.get(path, name: "picture-\(person.username).jpg")]
        + [PictureSize.small, .large].map { size in
          .get("\(path)?size=\(size.rawValue)", name: "picture-\(person.username)-\(size.rawValue).jpg")
        }
    }
  }

  private func validations(by user: PersonSeed) -> [ExportedCall] {
    ["", "?include=items", "?include=changes"].map {
      ExportedCall(method: .post, path: "/api/v1/cache/validate/\(user.user)\($0)", body: "{}")
    }
  }

  private func writes(by user: PersonSeed) -> [ExportedCall] {
    var calls: [ExportedCall] = []
    if let event = events.first(where: { $0.guests[user.username] == Invitation.Status.invited.rawValue }) {
      calls.append(
        ExportedCall(method: .put, path: "\(path(of: event))/invitations/me", body: #"{"status": "going"}"#))
    }
    if let request = friends.requests.first(where: { $0.to == user.username }) {
      let path = "/api/v1/friend-requests/\(FriendRequest.ID(rawValue: request.id))/accept"
      calls.append(ExportedCall(method: .post, path: path))
    }
    let picnic = #"{"title": "Picnic", "startTime": "2040-05-01T12:00:00Z", "timeZone": "Europe/Lisbon"}"#
    return calls + [
      ExportedCall(method: .post, path: "/api/v1/events", body: picnic, status: 201),
      ExportedCall(method: .post, path: "/api/v1/notifications/read", body: #"{"all": true}"#),
    ]
  }
}

/// A request of the export. Its response becomes a file.
struct ExportedCall: Sendable {
  let method: HTTPRequest.Method
  /// With its query.
  let path: String
  /// JSON.
  var body: String?
  /// The expected status.
  var status = 200
  /// Nil for a name made from the method and the path.
  var name: String?

  static func get(_ path: String, status: Int = 200, name: String? = nil) -> ExportedCall {
    ExportedCall(method: .get, path: path, status: status, name: name)
  }

  /// The name of the file. Of an id, it has the last twelve digits, which distinguish the demo's ids of one kind:
  /// `put-events-000000000005-invitations-me.json`.
  var file: String {
    if let name { return name }
    let words = path.replacing("/api/v1/", with: "").replacing(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-/, with: "")
      .replacing(/[^0-9A-Za-z.]+/, with: "-")
    return "\(method.rawValue.lowercased())-\(words)\(words.hasSuffix(".ics") ? "" : ".json")"
  }

  /// Bodies with passwords are not in the index.
  var shownBody: String? { path.hasPrefix("/api/v1/auth/") ? nil : body }
}
