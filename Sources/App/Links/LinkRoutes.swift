import HTTPServer
import Postgres

/// The share links of events, for their hosts, and joining through a link.
struct LinkRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  @Sendable func list(_ request: Request, _ context: Context) async throws -> Response {
    let (event, me) = (try self.event(context), try context.user)
    let links = try await ShareLink.list(of: event, for: me, in: database)
    let showsURL = try await ShareLink.showsURL(of: event, to: me, in: database)
    return .list(List(onlyPage: links.map { shown($0, if: showsURL($0)) }))
  }

  @Sendable func get(_ request: Request, _ context: Context) async throws -> Response {
    let (event, me) = (try self.event(context), try context.user)
    let link = try await ShareLink.find(try self.link(context), of: event, for: me, in: database)
    let showsURL = try await ShareLink.showsURL(of: event, to: me, in: database)
    return .json(shown(link, if: showsURL(link)))
  }

  @Sendable func create(_ request: Request, _ context: Context) async throws -> Response {
    let (event, me) = (try self.event(context), try context.user)
    let settings = try await request.read { fields in
      Changes(ShareLink.Settings.settings, from: &fields, in: .post).applied(to: ShareLink.Settings(kind: .view))
    }
    try await dependencies.checkMayWait(at: event, context)
    let id = ShareLink.ID.new()
    return try await dependencies.respond(to: context, at: [.actor(me), .event(event)]) {
      let link = try await ShareLink.create(
        id, to: event, settings, kid: dependencies.linkTokens.kid, by: me, in: $0)
      var response = Response.json(shown(link), status: .created)
      response.headers[.location] = "/api/v1/events/\(event)/links/\(id)"
      return response
    }
  }

  @Sendable func edit(_ request: Request, _ context: Context) async throws -> Response {
    let (event, id, me) = (try self.event(context), try self.link(context), try context.user)
    let edit = try await request.read { Changes(ShareLink.Settings.settings, from: &$0, in: .patch) }
    try await dependencies.checkMayWait(at: event, context)
    return try await dependencies.respond(to: context, at: [.actor(me), .event(event)]) {
      let link = try await ShareLink.find(id, of: event, for: me, in: database)
      return .json(shown(link, if: try await ShareLink.showsURL(of: event, to: me, in: database)(link)))
    } verb: {
      let link = try await ShareLink.edit(id, of: event, edit, by: me, in: $0)
      let showsURL = try await ShareLink.showsURL(of: event, to: me, in: $0)
      return .json(shown(link, if: showsURL(link)))
    }
  }

  @Sendable func revoke(_ request: Request, _ context: Context) async throws -> Response {
    let (event, id, me) = (try self.event(context), try self.link(context), try context.user)
    let visitors = try request.query { $0.word("visitors", of: ShareLink.Visitors.allCases) } ?? .keep
    try await dependencies.checkMayWait(at: event, context)
    return try await dependencies.respond(to: context, at: [.actor(me), .event(event)]) {
      try await ShareLink.revoke(id, of: event, visitors: visitors, by: me, in: $0)
      return .noContent
    }
  }

  @Sendable func join(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    guard let token = dependencies.linkTokens.read(context.parameters.get("token") ?? "") else {
      throw AppError.linkNotFound
    }
    if let again = try await dependencies.eventAgain(for: context) { return again }
    let event = try await ShareLink.event(of: token, in: database)
    return try await dependencies.respond(
      to: context, of: event, at: [.actor(me), .event(event)], isAboutHosts: true
    ) {
      try await ShareLink.join(token, to: event, by: me, in: $0)
    }
  }

  private func event(_ context: Context) throws -> Event.ID { try context.id("id", else: .eventNotFound) }

  private func link(_ context: Context) throws -> ShareLink.ID { try context.id("linkId", else: .linkNotFound) }

  private func shown(_ link: ShareLink, if showsURL: Bool = true) -> ShownLink {
    let token = showsURL ? dependencies.linkTokens.token(of: link.id, kid: link.kid) : nil
    return ShownLink(link: link, url: token.map { "\(PublicURL.base)/e/\($0)" })
  }
}

/// A link as its hosts see it.
private struct ShownLink: JSONWritable {
  let link: ShareLink
  let url: String?

  func write(to json: inout JSONWriter) {
    json.shareLink(
      id: link.id, url: url, kind: link.settings.kind, shows: link.settings.shows, expiresAt: link.settings.expiresAt,
      maxGuests: link.settings.maxGuests, maxPlusOnes: link.settings.maxPlusOnes, email: link.settings.email,
      approval: link.settings.approval, joined: link.joined, unmailed: link.unmailed, createdAt: link.createdAt)
  }
}
