import HTTPServer
import Postgres

struct InvitationRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  @Sendable func list(_ request: Request, _ context: Context) async throws -> Response {
    let (page, status, include) = try request.query { fields -> (PageRequest, Invitation.Status?, ListInclude?) in
      let status = fields.word("status", of: Invitation.Status.allCases)
      let include = fields.include(.participants, .digests)
      fields.refuseDigests(include, if: status != nil)
      return (fields.page(), status, include)
    }
    let me = try context.user
    let isCollection = status == nil && include == nil
    return try await request.unlessUnchanged(isCollection ? .invitations : nil, of: me, in: database) {
      .list(
        try await Invitation.list(
          of: me, status: status, showsParticipants: include == .participants, page: page, in: database),
        digests: dependencies.digests(if: include))
    }
  }

  @Sendable func answer(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let body = try await request.read(Body.InvitationAnswer.init)
    let basis = Party.Basis(status: body.ifStatus, plusOnes: body.ifPlusOnes)
    return try await dependencies.respond(to: context, of: id) {
      try await Guest.answer(
        body.status, plusOnes: body.plusOnes, basedOn: basis, to: id, by: Guest.ID(me), as: .invitee, in: $0)
    }
  }

  @Sendable func guests(_ request: Request, _ context: Context) async throws -> Response {
    let page = try request.query { $0.page() }
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    return .list(try await Guest.list(of: id, for: context.user, page: page, in: database))
  }

  @Sendable func invite(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let guests = try await request.read(Body.Invitees.init).userIds
    return try await dependencies.respond(to: context, of: id, about: guests) {
      try await Event.invite(guests, to: id, by: me, in: $0)
    }
  }

  @Sendable func withdraw(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let guest: Guest.ID = try context.id("userId", else: .userNotFound)
    return try await dependencies.respond(to: context, of: id, about: [guest.user]) {
      try await Guest.withdraw(guest, from: id, by: me, in: $0)
    }
  }

  @Sendable func approve(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Event.ID = try context.id("id", else: .eventNotFound)
    let guest: Guest.ID = try context.id("userId", else: .guestNotFound)
    let tags = request.ifMatch()
    return try await dependencies.respond(to: context, of: id, about: [guest.user]) {
      try await Guest.approve(guest, at: id, seenIn: tags, by: me, in: $0)
    }
  }
}

extension Fields.Rule where Value == Int {
  /// The number of people whom a guest brings. The event has its own maximum: see ``Event/Places``.
  static var plusOnes: Self { integer(0...Invitation.maximumGuests) }
}

extension Invitation: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.invitation(event: event, status: status, invitedAt: invitedAt)
  }
}

extension Guest: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.guest(id: id, user: person, name: name, status: status, plusOnes: plusOnes, answeredAt: answeredAt)
  }
}
