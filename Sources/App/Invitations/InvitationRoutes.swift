import Hummingbird
import Postgres

struct InvitationRoutes {
  private let database: Database

  init(_ dependencies: Dependencies) {
    database = dependencies.database
  }

  func add(to routes: Routes) {
    routes.get("invitations", use: list)
    routes.put("events/{id}/invitations/me", use: answer)
  }

  @Sendable private func list(_ request: Request, _ context: Context) async throws -> Response {
    let (page, status) = try request.query { ($0.page(), $0.word("status", of: Invitation.Status.allCases)) }
    if status == nil, let unchanged = try await request.unchanged(.invitations, of: context.user, in: database) {
      return unchanged
    }
    return .list(try await Invitation.list(of: context.user, status: status, page: page, in: database)) { $0 }
  }

  @Sendable private func answer(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let status = try await request.read { $0.required("status", .word(of: Invitation.answers)) }
    return .event(
      try await database.change { change in
        try await Invitation.answer(status, to: id, by: me, in: change)
        return try await Event.find(id, for: me, in: change)
      })
  }
}

extension Invitation: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("event", EventJSON(event: event, participants: nil))
      $0.member("status", status.rawValue)
      $0.member("invitedAt", invitedAt)
    }
  }
}

extension Guest: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("user", person)
      $0.member("status", status.rawValue)
      $0.member("answeredAt", answeredAt)
    }
  }
}
