import Foundation
import Postgres
import Testing

@testable import App

extension TestApp {
  /// Makes friends of a user with SQL, because registering hundreds of users takes long.
  ///
  /// - Parameter prefix: the start of their usernames, which end in numbers from 1.
  func crowd(_ count: Int, around host: Phone, named prefix: String = "guest") async throws -> [Phone] {
    let ids = (0..<count).map { _ in User.ID.new() }
    try await database.batch(
      """
      INSERT INTO users (id, username, display_name)
      SELECT id, \(prefix) || place, 'Guest ' || place FROM unnest(\(ids)) WITH ORDINALITY AS added (id, place)
      """,
      """
      INSERT INTO user_stamps (user_id) SELECT id FROM unnest(\(ids)) AS added (id)
      """,
      """
      INSERT INTO friendships (user_a, user_b)
      SELECT least(id, \(host.userID)), greatest(id, \(host.userID)) FROM unnest(\(ids)) AS added (id)
      """)
    var phones: [Phone] = []
    for (place, id) in ids.enumerated() {
      let token = try await dependencies.accessTokens.sign(user: id, session: .new())
      phones.append(Phone(self, "\(prefix)\(place + 1)", id: id, accessToken: token))
    }
    return phones
  }
}

extension Phone {
  @discardableResult
  func cancelEvent(
    _ event: String, headers: [(String, String)] = [], expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Answer {
    try await perform("DELETE", "events/\(event)", headers: headers, expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func invite(
    _ guests: [Phone], to event: String, expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Answer {
    let ids = guests.map { "\"\($0.id)\"" }.joined(separator: ",")
    return try await perform(
      "POST", "events/\(event)/invitations", #"{"userIds": [\#(ids)]}"#, expecting: status,
      sourceLocation: sourceLocation)
  }

  @discardableResult
  func withdraw(
    _ guest: Phone, from event: String, expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Answer {
    try await perform(
      "DELETE", "events/\(event)/invitations/\(guest.id)", expecting: status, sourceLocation: sourceLocation)
  }

  /// All items of a list, page by page.
  ///
  /// - Parameter meanwhile: an action to run between the pages.
  func pages(
    of path: String, limit: Int, meanwhile: (_ page: Int) async throws -> Void = { _ in }
  ) async throws -> [JSON] {
    var items: [JSON] = []
    var cursor: String?
    var number = 0
    repeat {
      let separator = path.contains("?") ? "&" : "?"
      let page = try await get("\(path)\(separator)limit=\(limit)" + (cursor.map { "&cursor=\($0)" } ?? ""))
      items += page["items"].array
      cursor = page["nextCursor"].string
      number += 1
      try await meanwhile(number)
    } while cursor != nil
    return items
  }
}
