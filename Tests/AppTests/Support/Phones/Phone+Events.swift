import Testing

@testable import App

/// The calls of an app about events, guests, hosts and share links.
extension Phone {
  /// - Returns: the event.
  @discardableResult func createEvent(
    _ title: String = "Picnic", inviting guests: [Phone] = [], capacity: Int? = nil,
    startTime: String = "2030-05-01T18:00:00Z", endTime: String? = "2030-05-01T20:00:00Z", expecting status: Int = 201,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> JSON {
    let ids = guests.map { "\"\($0.id)\"" }.joined(separator: ",")
    let response = try await send(
      "POST", "events",
      """
      {"title": "\(title)", "startTime": "\(startTime)", "endTime": \(endTime.map { "\"\($0)\"" } ?? "null"),
       "timeZone": "Europe/Berlin", "capacity": \(capacity.map(String.init) ?? "null"), "inviteeIds": [\(ids)]}
      """)
    #expect(response.status == status, "\(response.body)", sourceLocation: sourceLocation)
    return response.json
  }

  @discardableResult func answer(
    _ status: String, plusOnes: Int? = nil, to event: String, expecting code: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let others = plusOnes.map { #", "plusOnes": \#($0)"# } ?? ""
    return try await act(
      "answerInvitation", ["event": event], body: #"{"status": "\#(status)"\#(others)}"#, code, sourceLocation)
  }

  @discardableResult func edit(
    _ event: String, _ body: String, headers: [(String, String)] = [], expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("editEvent", ["event": event], body: body, headers: headers, status, sourceLocation)
  }

  @discardableResult func cancelEvent(
    _ event: String, headers: [(String, String)] = [], expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("cancelEvent", ["event": event], headers: headers, status, sourceLocation)
  }

  @discardableResult func invite(
    _ guests: [Phone], to event: String, expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let ids = guests.map { "\"\($0.id)\"" }.joined(separator: ",")
    return try await act("inviteToEvent", ["event": event], body: #"{"userIds": [\#(ids)]}"#, status, sourceLocation)
  }

  @discardableResult func withdraw(
    _ guest: Phone, from event: String, expecting status: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("withdrawInvitation", ["event": event, "invitee": guest.id], status, sourceLocation)
  }

  /// Offers the role of a co-host, which the user then accepts.
  @discardableResult func addHost(
    _ host: Phone, to event: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let response = try await act("addHost", ["event": event, "invitee": host.id], status, sourceLocation)
    if let offer = try await host.proposals(about: event).first {
      try await host.accept(proposal: offer, sourceLocation: sourceLocation)
    }
    return response
  }

  /// - Returns: the proposal's id.
  @discardableResult func offerHost(
    _ host: Phone, to event: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    try await act("addHost", ["event": event, "invitee": host.id], 200, sourceLocation)
    return try #require(try await host.proposals(about: event).first, sourceLocation: sourceLocation)
  }

  /// The ids of the user's proposals about an event, newest first.
  func proposals(about event: String) async throws -> [String] {
    try await get("proposals?limit=100")["items"].array.filter { $0["event"]["id"].string == event }
      .compactMap { $0["id"].string }
  }

  @discardableResult func accept(
    proposal: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("acceptProposal", ["proposal": proposal], status, sourceLocation)
  }

  @discardableResult func decline(
    proposal: String, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("declineProposal", ["proposal": proposal], status, sourceLocation)
  }

  @discardableResult func removeHost(
    _ host: Phone, from event: String, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("removeHost", ["event": event, "invitee": host.id], status, sourceLocation)
  }

  @discardableResult func setAnswer(
    _ status: String, of guest: Phone, to event: String, expecting code: Int = 200,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act(
      "setAnswer", ["event": event, "invitee": guest.id], body: #"{"status": "\#(status)"}"#, code, sourceLocation)
  }

  @discardableResult func remind(
    of event: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("remindGuests", ["event": event], status, sourceLocation)
  }

  @discardableResult func duplicate(
    _ event: String, _ body: String, expecting status: Int = 201, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("duplicateEvent", ["event": event], body: body, status, sourceLocation)
  }

  /// Creates a share link.
  ///
  /// - Parameter settings: the body. If it does not mention `approval`, guests need none.
  func createLink(
    to event: String, _ settings: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> (id: String, token: String) {
    let body = settings.contains("approval") ? settings : #"{"approval": false, \#(settings.dropFirst())"#
    let response = try await send("POST", "events/\(event)/links", body)
    #expect(response.status == 201, "\(response.body)", sourceLocation: sourceLocation)
    let url = try #require(response.json["url"].string, sourceLocation: sourceLocation)
    return (
      try #require(response.json["id"].string, sourceLocation: sourceLocation),
      String(try #require(url.split(separator: "/").last, sourceLocation: sourceLocation))
    )
  }

  func join(
    _ token: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let response = try await send("POST", "links/\(token)/join")
    #expect(response.status == status, "\(response.body)", sourceLocation: sourceLocation)
    return response
  }
}
