@testable import App

/// The kind of list in a response.
enum Listing: Sendable {
  case profile, friends, requests, blocks, events, invitations, event, guests, inbox, preferences

  static let states = ["invited", "going", "maybe", "declined", "waitlisted", "pending"]

  static func line(_ parts: [String?]) -> String {
    parts.map { $0 ?? "-" }.joined(separator: " | ")
  }

  static func notice(_ type: String, for recipient: String, _ members: [String]) -> String {
    "\(type) for \(recipient): \(members.sorted().joined(separator: ", "))"
  }

  /// The members of a notification besides its type and sentence.
  static func members(of notification: JSON) -> [String] {
    guard case .object(let members) = notification else { return [] }
    let common = ["type", "message", "locKey", "locArgs", "id", "createdAt", "readAt"]
    let rest = members.filter { !common.contains($0.key) }
    return rest.map { name, value in
      let changes = value.array.map { change in
        "\(change["field"].word ?? "-") from \(change["old"].valueWord) to \(change["new"].valueWord)"
      }
      return "\(name)=\(value.word ?? changes.sorted().joined(separator: ", "))"
    }
  }

  func lines(of json: JSON) -> [String] {
    let items = json["items"].array
    switch self {
    case .profile: return [Self.line(["id", "username", "displayName", "bio", "email"].map { json[$0].word })]
    case .friends: return items.map { Self.name($0["user"]) ?? "-" }
    case .blocks: return items.map { Self.name($0["user"]) ?? "-" }.sorted()
    case .requests:
      return items.map {
        Self.line([
          $0["id"].word, Self.name($0["sender"]), Self.name($0["receiver"]), $0["status"].word,
          $0["filtered"].bool.map { "\($0)" },
        ])
      }
    case .events: return items.map(Self.eventLine)
    case .invitations: return items.map { Self.line([Self.eventLine($0["event"]), $0["status"].word]) }
    case .event: return [Self.eventLine(json)] + json["participants"].array.map(Self.guestLine).sorted()
    case .guests: return items.map(Self.guestLine).sorted()
    case .inbox:
      return items.map {
        Self.notice($0["type"].word ?? "-", for: $0["readAt"] == .null ? "unread" : "read", Self.members(of: $0))
      }
    case .preferences:
      return Model.types.map { type in "\(type): \(json[type].bool.map { "\($0)" } ?? "-")" }
    }
  }

  private static func eventLine(_ json: JSON) -> String {
    let members = ["id", "title", "note", "startTime", "endTime"].map { json[$0].word }
    let hosts = json["hosts"].array.compactMap(name).joined(separator: ", ")
    return line(
      members + [
        json["location"]["name"].word, json["url"].word, json["capacity"].word, json["answerBy"].word,
        json["maxPlusOnes"].word,
        json["status"].word,
        name(json["creator"]),
        "hosts: \(hosts)", json["version"].word, json["myRole"].word, json["myStatus"].word,
        json["myPlusOnes"].word, states.map { json["counts"][$0].word ?? "-" }.joined(separator: "+"),
      ])
  }

  private static func guestLine(_ json: JSON) -> String {
    line([json["id"].word, name(json["user"]), json["name"].word, json["status"].word, json["plusOnes"].word])
  }

  /// Nil if there is no user.
  private static func name(_ json: JSON) -> String? {
    json == .null ? nil : line(["id", "username", "displayName"].map { json[$0].word })
  }
}

extension JSON {
  /// A string or a number, as text.
  fileprivate var word: String? { string ?? int.map { String($0) } }

  /// The value of an event's field. A location is given by its name.
  fileprivate var valueWord: String { word ?? self["name"].word ?? "-" }
}
