import HTTPServer
import Postgres

struct BlockRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  @Sendable func blocks(_ request: Request, _ context: Context) async throws -> Response {
    let (page, include) = try request.query { ($0.page(), $0.include(.digests)) }
    let digests = dependencies.digests(if: include)
    return try await request.unlessUnchanged(digests == nil ? .blocks : nil, of: context.user, in: database) {
      .list(try await Block.list(of: context.user, page: page, in: database), digests: digests)
    }
  }

  @Sendable func block(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let other: User.ID = try context.id("userId", else: .userNotFound)
    return try await done(me, other, context) { try await User.block(other, by: me, in: $0) }
  }

  @Sendable func unblock(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let other: User.ID = try context.id("userId", else: .userNotFound)
    return try await done(me, other, context) { try await User.unblock(other, by: me, in: $0) }
  }

  /// An unknown id gets the same response as a hidden user's id. Otherwise clients could tell the two apart.
  private func done(
    _ me: User.ID, _ other: User.ID, _ context: Context, _ body: (Change) async throws -> Void
  ) async throws -> Response {
    do {
      return try await dependencies.respond(to: context, at: [.user(me), .user(other)]) {
        try await body($0)
        return .noContent
      }
    } catch let error as AppError where error == .userNotFound {
      return .noContent
    }
  }
}

extension Block: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.block(user: person, since: since)
  }
}
