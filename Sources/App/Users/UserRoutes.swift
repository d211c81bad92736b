import Hummingbird
import Postgres

struct UserRoutes {
  let database: Database

  func add(to routes: Routes) {
    routes.get("users/me", use: me)
    routes.get("users", use: search)
    routes.get("users/recommended", use: recommended)
    routes.get("users/{id}", use: profile)
  }

  @Sendable private func me(_ request: Request, _ context: Context) async throws -> Response {
    try await request.unlessUnchanged(.profile, of: context.user, in: database) {
      guard let user = try await User.find(context.user, in: database) else { throw AppError.sessionEnded }
      return .profile(user)
    }
  }

  @Sendable private func search(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let (query, limit) = try request.query { ($0.text("query", 1...100), $0.onlyPage()) }
    return .list(List(onlyPage: try await Person.named(query, for: me, atMost: limit, in: database)))
  }

  @Sendable private func recommended(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let limit = try request.query { $0.onlyPage() }
    return .list(List(onlyPage: try await Recommendation.list(for: me, atMost: limit, in: database)))
  }

  @Sendable private func profile(_ request: Request, _ context: Context) async throws -> Response {
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
