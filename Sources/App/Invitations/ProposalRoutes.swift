import HTTPServer
import Postgres

struct ProposalRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  @Sendable func list(_ request: Request, _ context: Context) async throws -> Response {
    let page = try request.query { $0.page() }
    return .list(try await Proposal.list(of: context.user, page: page, in: database))
  }

  @Sendable func accept(_ request: Request, _ context: Context) async throws -> Response {
    let (me, id) = (try context.user, try self.id(context))
    if let again = try await dependencies.eventAgain(for: context) { return again }
    let (kind, event) = try await Proposal.find(id, of: me, in: database)
    return try await dependencies.respond(to: context, of: event, at: [.actor(me), .event(event)]) {
      try await Proposal.accept(id, kind, about: event, by: me, in: $0)
    }
  }

  @Sendable func decline(_ request: Request, _ context: Context) async throws -> Response {
    let (me, id) = (try context.user, try self.id(context))
    let (kind, event) = try await Proposal.find(id, of: me, in: database)
    return try await dependencies.respond(to: context, at: [.actor(me), .event(event)]) {
      try await Proposal.decline(id, kind, about: event, by: me, in: $0)
      return .noContent
    }
  }

  private func id(_ context: Context) throws -> Proposal.ID { try context.id("id", else: .proposalNotFound) }
}

extension Proposal: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.proposal(
      id: id, kind: kind, event: ProposedEvent(proposal: self), person: person, name: name, status: status,
      plusOnes: plusOnes, createdAt: createdAt)
  }
}

private struct ProposedEvent: JSONWritable {
  let proposal: Proposal

  func write(to json: inout JSONWriter) {
    json.proposedEvent(
      id: proposal.event, title: proposal.title, startTime: proposal.startTime, timeZone: proposal.timeZone)
  }
}
