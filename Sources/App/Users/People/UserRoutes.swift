import HTTPServer
import Postgres

struct UserRoutes {
  let database: Database

  @Sendable func me(_ request: Request, _ context: Context) async throws -> Response {
    try await request.unlessUnchanged(.profile, of: context.user, in: database) {
      guard let user = try await User.find(context.user, in: database) else { throw AppError.sessionEnded }
      return .profile(user)
    }
  }

  @Sendable func search(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    enum Wanted {
      case these([User.ID])
      case named(String, atMost: Int)
    }
    let wanted = try request.query { fields -> Wanted in
      if let ids: [User.ID] = fields.ids() { return .these(ids) }
      return .named(fields.text("query", 1...100), atMost: fields.onlyPage())
    }
    switch wanted {
    case .these(let ids): return .list(List(onlyPage: try await FoundUser.these(ids, for: me, in: database)))
    case .named(let query, let limit):
      return .list(List(onlyPage: try await FoundUser.named(query, for: me, atMost: limit, in: database)))
    }
  }

  @Sendable func recommended(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let limit = try request.query { $0.onlyPage() }
    return .list(List(onlyPage: try await Recommendation.list(for: me, atMost: limit, in: database)))
  }

  @Sendable func profile(_ request: Request, _ context: Context) async throws -> Response {
    let id: User.ID = try context.id("id", else: .userNotFound)
    guard let profile = try await PublicProfile.find(id, for: context.user, in: database) else {
      throw AppError.userNotFound
    }
    return .json(profile)
  }
}

extension Response {
  /// The user's own profile, which is one of their collections.
  static func profile(_ user: User) -> Response {
    .json(user, stamp: user.stamp)
  }
}
