import Testing

@testable import App

extension Phone {
  @discardableResult
  func cancelEvent(
    _ event: String, headers: [(String, String)] = [], expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(
      act: "cancelEvent", ["event": event], headers: headers, expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func invite(
    _ guests: [Phone], to event: String, expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let ids = guests.map { "\"\($0.id)\"" }.joined(separator: ",")
    return try await perform(
      act: "inviteToEvent", ["event": event], #"{"userIds": [\#(ids)]}"#, expecting: status,
      sourceLocation: sourceLocation)
  }

  @discardableResult
  func withdraw(
    _ guest: Phone, from event: String, expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(
      act: "withdrawInvitation", ["event": event, "invitee": guest.id], expecting: status,
      sourceLocation: sourceLocation)
  }

  /// Offers the role of a co-host, which the user then accepts.
  @discardableResult
  func addHost(
    _ host: Phone, to event: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let response = try await perform(
      act: "addHost", ["event": event, "invitee": host.id], expecting: status, sourceLocation: sourceLocation)
    if let offer = try await host.proposals(about: event).first {
      try await host.accept(proposal: offer, sourceLocation: sourceLocation)
    }
    return response
  }

  /// - Returns: the proposal's id.
  @discardableResult
  func offerHost(
    _ host: Phone, to event: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    try await perform(
      act: "addHost", ["event": event, "invitee": host.id], expecting: 200, sourceLocation: sourceLocation)
    return try #require(try await host.proposals(about: event).first, sourceLocation: sourceLocation)
  }

  /// The ids of the user's proposals about an event, newest first.
  func proposals(about event: String) async throws -> [String] {
    try await get("proposals?limit=100")["items"].array.filter { $0["event"]["id"].string == event }
      .compactMap { $0["id"].string }
  }

  @discardableResult
  func accept(
    proposal: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(act: "acceptProposal", ["proposal": proposal], expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func decline(
    proposal: String, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(act: "declineProposal", ["proposal": proposal], expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func removeHost(
    _ host: Phone, from event: String, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(
      act: "removeHost", ["event": event, "invitee": host.id], expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func setAnswer(
    _ status: String, of guest: Phone, to event: String, expecting code: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(
      act: "setAnswer", ["event": event, "invitee": guest.id], #"{"status": "\#(status)"}"#, expecting: code,
      sourceLocation: sourceLocation)
  }

  @discardableResult
  func remind(
    of event: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(act: "remindGuests", ["event": event], expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func duplicate(
    _ event: String, _ body: String, expecting status: Int = 201, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(act: "duplicateEvent", ["event": event], body, expecting: status, sourceLocation: sourceLocation)
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
